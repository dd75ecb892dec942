package regcache

// A Verdict is how a buffer gets to the card.
type Verdict uint8

const (
	// Copy it to memory that is registered, or send it in a message.
	Copy Verdict = iota
	// Register it: Cover tells how much of its surroundings, and Add has it known.
	Register
	// Registered: it is.
	Registered
)

var verdicts = [...]string{"copy", "register", "registered"}

func (v Verdict) String() string { return verdicts[v] }

// A Policy decides for each use of a buffer whether it is to be copied or registered, from what that
// costs and how often it was used, and keeps what was registered. It is not for several goroutines
// at once.
type Policy[R any] struct {
	*Cache[R]
	// stays tells that what is kept ends only for what is worth more.
	stays   bool
	usage   Usage[*Entry[R]]
	classes [64]class
}

// A class is of sizes up to a power of 2; what holds for the largest holds for all.
type class struct {
	// threshold is from which use on a buffer is frequently used, 0 if none is. Uses are counted up
	// to most, the threshold at least.
	threshold, most int
	// pays is the number of uses that pay.
	pays int
	// learner is nil where the threshold is fixed.
	learner *learner
}

// NewPolicy makes one of what things cost, at which part of the uses that pay a buffer is
// registered, and what is kept. What is too long to be kept is copied, but for Always. extra is not
// called later.
func NewPolicy[R any](extra Extra, speculation Speculation, limits Limits) *Policy[R] {
	p := &Policy[R]{Cache: New[R](limits), stays: speculation == Adaptive}
	for i := classOf(Floor); i < 63; i++ {
		c := &p.classes[i]
		if speculation != Always && (limits.Regions == 0 || 1<<i > limits.Bytes) {
			// It would not be kept.
			continue
		}
		using, copying, registering := extra(1 << i)
		n := uses(copying, registering)
		c.pays, c.threshold = n, speculation.Threshold(n)
		c.most = c.threshold
		if speculation == Adaptive && n > 0 {
			c.learner = newLearner(n, using, copying, registering)
			c.most = int(c.learner.enough) + 1
		}
	}
	return p
}

// Use is asked for each use of the buffer from an address on, of size bytes, at least 1. If it is
// Registered the entry is in use, and else nil.
func (p *Policy[R]) Use(address uint64, size int) (*Entry[R], Verdict) {
	if size < Floor {
		return nil, Copy
	}
	c := &p.classes[classOf(size)]
	if c.threshold == 0 && c.learner == nil {
		return nil, Copy
	}
	p.now++
	before := p.usage.Frequent()
	b, frequent := p.usage.Use(address, size, c.threshold, c.most)
	if b == nil {
		return nil, Copy
	}
	e, to := b.Noted, address+uint64(size)
	known := e != nil && p.Again(e, address, to)
	if !known && (frequent || b.uses == 1 || e != nil) {
		e, frequent = p.search(c, b, to)
		known = e != nil
	}
	waited := b.waits != 0
	if p.stays && !known && b.frequent {
		p.crowd(b, c.pays, size)
	}
	if c.learner != nil && b.uses <= c.learner.enough {
		switch began := p.usage.Frequent() > before; {
		case !b.frequent || int(b.uses) >= c.pays || b.waits == refused:
		case (began || waited) && b.waits == 0:
			c.learner.speculate()
		case !began && !waited && b.waits > 0:
			c.learner.spared()
		}
		b.last, b.life = c.learner.used(address, b.uses, b.last, b.life, known)
		c.threshold = c.learner.threshold()
	}
	return e, p.verdict(b, known, frequent)
}

// crowd notes a use of a frequent buffer that is not registered, of a class of which so many uses pay, and finds
// whether there is room for it. Where others would have to end for that, it has to be used half as often as
// would have paid, and they not at all meanwhile: if more is in use than can be kept, what is kept stays,
// instead of each ending before it is used again.
func (p *Policy[R]) crowd(b *Buffer[*Entry[R]], pays, bytes int) {
	if b.waits == refused {
		return
	}
	if b.waits == 0 {
		b.since = p.now
	}
	switch {
	case p.fits(uint64(bytes)):
		b.waits = 0
		return
	case !p.stale(b.since):
		b.since, b.waits = p.now, 1
		return
	}
	b.waits = min(b.waits+1, refused-1)
	if int(b.waits) < min(pays/2, refused-1) {
		return
	}
	if p.room(uint64(bytes), b.since) {
		b.waits = 0
	} else {
		b.since, b.waits = p.now, 1
	}
}

// search finds a buffer in the cache that is not where it was noted, and tells whether it is still
// frequently used: not if it was there, for its memory may be another's now.
func (p *Policy[R]) search(c *class, b *Buffer[*Entry[R]], to uint64) (e *Entry[R], frequent bool) {
	if e = p.Find(b.address, to); e == nil && b.Noted != nil {
		if c.learner != nil {
			c.learner.over(b.address, b.life)
		}
		p.usage.again(b)
		return nil, p.usage.reached(b, c.threshold)
	}
	b.Noted = e
	return e, b.frequent
}

func (p *Policy[R]) verdict(b *Buffer[*Entry[R]], known, frequent bool) Verdict {
	switch {
	case known:
		return Registered
	case frequent && b.waits == 0:
		return Register
	}
	return Copy
}

// Peek is what Use would say, by one who has told of the use.
func (p *Policy[R]) Peek(address uint64, size int) (*Entry[R], Verdict) {
	if size < Floor {
		return nil, Copy
	}
	b := p.usage.find(address, classOf(size))
	if b == nil {
		return nil, Copy
	}
	to := address + uint64(size)
	if e := b.Noted; e != nil && p.Again(e, address, to) {
		return e, Registered
	}
	var e *Entry[R]
	if b.frequent || b.Noted != nil {
		e = p.Find(address, to)
	}
	return e, p.verdict(b, e != nil, b.frequent && b.Noted == nil)
}

// Refuse tells that a buffer can't be registered: Use says so no more, as long as it remembers
// the buffer.
func (p *Policy[R]) Refuse(address uint64, size int) {
	if b := p.usage.find(address, classOf(max(size, Floor))); b != nil {
		if c := &p.classes[b.class]; c.learner != nil && b.frequent && b.waits == 0 && int(b.uses) < c.pays {
			c.learner.spared()
		}
		b.waits = refused
	}
}
