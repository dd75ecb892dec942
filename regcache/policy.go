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
	costs       Costs
	speculation Speculation
	usage       Usage[*Entry[R]]
	// thresholds are those of the classes of sizes, by the largest size of each.
	thresholds [64]int
}

// NewPolicy makes one of what things cost, at which part of the uses that pay a buffer is
// registered, and what is kept.
func NewPolicy[R any](costs Costs, speculation Speculation, limits Limits) *Policy[R] {
	p := &Policy[R]{Cache: New[R](limits), costs: costs, speculation: speculation}
	for class := range p.thresholds[:63] {
		p.thresholds[class] = speculation.Threshold(costs.Uses(1 << class))
	}
	return p
}

// Use is asked for each use of the buffer from an address on, of size bytes, at least 1. If it is
// Registered the entry is in use, and else nil.
func (p *Policy[R]) Use(address uint64, size int) (*Entry[R], Verdict) {
	if size < Floor {
		return nil, Copy
	}
	to := address + uint64(size)
	known, frequent := p.usage.Use(address, size, p.thresholds[classOf(size)])
	if !frequent {
		return nil, Copy
	}
	if e := *known; e != nil && p.Again(e, address, to) {
		return e, Registered
	}
	if *known = p.Find(address, to); *known != nil {
		return *known, Registered
	}
	return nil, Register
}
