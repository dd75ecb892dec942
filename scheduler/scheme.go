package scheduler

// A Scheme is a set of ways to arrange the operations of an epoch, each of which can be
// left out, so that it can be measured against its absence.
type Scheme uint8

const (
	// Defer has operations wait for a synchronization, or until waiting would cost more
	// than it saves. Without it each is sent when it is called, and no other way matters.
	Defer Scheme = 1 << iota
	// GetsFirst sends what reads before what writes: the origin waits for data of reads.
	GetsFirst
	// Interleave lets direct reads and writes take turns, a read first, so that both
	// directions of the link carry data. It goes with GetsFirst.
	Interleave
	// Pack sends small operations together in messages, and with the synchronization
	// that completes them, where that costs less than each by itself.
	Pack
	// Merge makes one operation of small puts that follow each other, where each touches or
	// overlaps what those before it do, and has accumulates of a word each that follow each other
	// queued as one: a run.
	Merge
	// Early starts operations before the synchronization when enough of them wait.
	Early
	// Adapt leaves out the ways that the epochs so far have shown not to pay.
	Adapt

	// All of them.
	All = Defer | GetsFirst | Interleave | Pack | Merge | Early | Adapt
)

// has tells whether all of some ways are in the scheme.
func (s Scheme) has(some Scheme) bool { return s&some == some }
