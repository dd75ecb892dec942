package regcache

// A Decision is how a buffer gets to the card.
type Decision uint8

const (
	// Copy: copy the buffer to registered memory, or send it in a message.
	Copy Decision = iota
	// Register: register the buffer. Cover returns the range to register, and Add adds the region to the cache.
	Register
	// Registered: the buffer is registered.
	Registered
)

var decisions = [...]string{"copy", "register", "registered"}

func (v Decision) String() string { return decisions[v] }

// A Policy decides for each use of a buffer whether to copy or register it, from the costs and the number of its uses.
// It keeps the registered regions in its Cache. It must not be used by several goroutines at once.
type Policy[R any] struct {
	*Cache[R]
	// stays is set if kept regions are only evicted for buffers that are worth more.
	stays   bool
	usage   Usage[*Entry[R]]
	classes [64]class
}

// A class is the sizes up to a power of 2. What holds for its largest size is used for all.
type class struct {
	// threshold is the use from which on a buffer is frequently used, 0 if never. Uses are counted to most, which is at
	// least threshold.
	threshold, most int
	// pays is the number of uses that pay.
	pays int
	// learner is nil where the threshold is fixed.
	learner *learner
}

// NewPolicy returns a policy for the costs extra. speculation is the fraction of the paying uses after which a buffer
// is registered. limits bound what is kept. A buffer too long to be kept is copied, except with Always. extra is called
// only within NewPolicy.
func NewPolicy[R any](extra Extra, speculation Speculation, limits Limits) *Policy[R] {
	p := &Policy[R]{Cache: New[R](limits), stays: speculation == Adaptive}
	for i := classOf(Floor); i < 63; i++ {
		c := &p.classes[i]
		if speculation != Always && (limits.Regions == 0 || 1<<i > limits.Bytes) {
			// The buffer would not be kept.
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

// Use counts a use of the buffer at address, of size bytes, at least 1, and returns the decision. With Registered it
// returns the entry, which is in use until Release. Otherwise the entry is nil.
func (p *Policy[R]) Use(address uint64, size int) (*Entry[R], Decision) {
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
	e, to := b.Value, address+uint64(size)
	known := e != nil && p.Again(e, address, to)
	if !known && (frequent || b.uses == 1 || e != nil) {
		e, frequent = p.search(c, b, to)
		known = e != nil
	}
	waited := b.waits != 0
	if p.stays && !known && b.frequent {
		p.admit(b, c.pays, size)
	}
	if c.learner != nil && b.uses <= c.learner.enough {
		switch began := p.usage.Frequent() > before; {
		case !b.frequent || int(b.uses) >= c.pays || b.waits == rejected:
		case (began || waited) && b.waits == 0:
			c.learner.speculate()
		case !began && !waited && b.waits > 0:
			c.learner.spared()
		}
		b.last, b.life = c.learner.used(address, b.uses, b.last, b.life, known)
		c.threshold = c.learner.threshold()
	}
	return e, p.decision(b, known, frequent)
}

// admit counts a use of a frequent buffer that is not registered, and finds whether there is room for it. pays is the
// paying number of uses. If others would have to be evicted, the buffer must first be used half as often as pays, while
// they are not used at all. So if more is in use than can be kept, kept regions stay, instead of each being evicted
// before it is used again.
func (p *Policy[R]) admit(b *Buffer[*Entry[R]], pays, bytes int) {
	if b.waits == rejected {
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
	b.waits = min(b.waits+1, rejected-1)
	if int(b.waits) < min(pays/2, rejected-1) {
		return
	}
	if p.room(uint64(bytes), b.since) {
		b.waits = 0
	} else {
		b.since, b.waits = p.now, 1
	}
}

// search finds a buffer in the cache that is not in its noted entry, and reports whether it is still frequently used.
// If it had an entry before, it is not: its memory may belong to another buffer now.
func (p *Policy[R]) search(c *class, b *Buffer[*Entry[R]], to uint64) (e *Entry[R], frequent bool) {
	if e = p.Find(b.address, to); e == nil && b.Value != nil {
		if c.learner != nil {
			c.learner.over(b.address, b.life)
		}
		p.usage.again(b)
		return nil, p.usage.reached(b, c.threshold)
	}
	b.Value = e
	return e, b.frequent
}

func (p *Policy[R]) decision(b *Buffer[*Entry[R]], known, frequent bool) Decision {
	switch {
	case known:
		return Registered
	case frequent && b.waits == 0:
		return Register
	}
	return Copy
}

// Peek returns what Use would return, without counting a use.
func (p *Policy[R]) Peek(address uint64, size int) (*Entry[R], Decision) {
	if size < Floor {
		return nil, Copy
	}
	b := p.usage.find(address, classOf(size))
	if b == nil {
		return nil, Copy
	}
	to := address + uint64(size)
	if e := b.Value; e != nil && p.Again(e, address, to) {
		return e, Registered
	}
	var e *Entry[R]
	if b.frequent || b.Value != nil {
		e = p.Find(address, to)
	}
	return e, p.decision(b, e != nil, b.frequent && b.Value == nil)
}

// Reject records that a buffer cannot be registered. Use then returns Copy for it, as long as the table remembers the
// buffer.
func (p *Policy[R]) Reject(address uint64, size int) {
	if b := p.usage.find(address, classOf(max(size, Floor))); b != nil {
		if c := &p.classes[b.class]; c.learner != nil && b.frequent && b.waits == 0 && int(b.uses) < c.pays {
			c.learner.spared()
		}
		b.waits = rejected
	}
}
