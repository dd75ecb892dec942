package scheduler

import "time"

// A lesson is what has been learned of a pattern: the best scheme so far, and what was tried.
type lesson struct {
	pattern Pattern
	// worth is how much is lost if it is forgotten.
	worth uint8
	// ways are those that may matter. deferring is the best with Defer.
	best, ways, deferring Scheme
	// size is the logarithm of how many epochs a block has, blocks how many there were.
	size   uint8
	blocks uint32
	// next is the way to try next. Each may be tried when there were due blocks, which is
	// 1<<gap after it was tried last.
	next uint8
	gap  [tried]uint8
	due  [tried]uint32

	// A trial compares the best with a candidate that has one way flipped; that is none
	// where there is no trial. It has had block blocks, and since a pair was complete voids
	// were for nothing. The candidate has won lead more than it lost. The last block took
	// first, if it was the first of its pair.
	way          uint8
	block, voids uint8
	lead         int8
	candidate    Scheme
	first        time.Duration
}

// The numbers were chosen by simulation: see TestLearner.
const (
	// A block lasts from shortBlock to longBlock, if epochs are not too long or too short
	// for that. It has at most 1<<mostEpochs.
	shortBlock, longBlock = 100 * time.Microsecond, 200 * time.Microsecond
	mostEpochs            = 6
	// A trial ends when the candidate leads by adopt, or is behind by reject after two whole
	// pairs, or after so many. A block that is shorter by an eighth counts twice. To lead by
	// adopt is hard for what is no better, to be behind by reject easy: it comes again.
	// Where a block is a single epoch, which varies more, it takes adoptSingle.
	adopt, adoptSingle, reject, mostPairs = 6, 10, 2, 24
	// Each of the first pairs is half as long as the next. They tell only what is so bad
	// that a whole block of it would be too dear.
	shortPairs = 4
	// mostVoids is how many blocks of a trial may be for nothing, in a row.
	mostVoids = 8
	// firstBlocks are without a trial, and find how long a block is.
	firstBlocks = 4
	// A gap doubles when its way has lost, up to lostGap, and more than once when it was far
	// behind, up to farGap.
	firstGap, lostGap, farGap = 6, 8, 12
)

const (
	tried = 6
	none  = tried
)

// order is that in which ways are tried.
var order = [tried]Scheme{Early, Interleave, Pack, GetsFirst, Merge, Defer}

// turns have a bit for each of eight pairs, which tells that the candidate comes first. Each
// has four set, so that what changes slowly cancels. Any two agree in four: where a fence ends
// the epochs on several targets, each Learner measures the trials of all, and those of other
// ways, or of other patterns, cancel, too.
var turns = [...]uint8{0b10101010, 0b01100110, 0b11001100, 0b11110000, 0b01011010, 0b00111100, 0b10010110}

func newLesson(p Pattern, base Scheme) lesson {
	at := lesson{pattern: p, best: base, deferring: base, size: 1, way: none}
	at.meet(p, base)
	for i := range tried {
		at.gap[i], at.due[i] = firstGap, firstBlocks
	}
	return at
}

// meet has the lesson be on epochs of a pattern, too.
func (at *lesson) meet(p Pattern, base Scheme) {
	at.ways |= p.ways & base
	if at.blocks == 0 && p.patient && base.has(Interleave) {
		at.best &^= Early
	}
}

// try begins a trial if none is under way and one is due.
func (at *lesson) try(base Scheme) {
	if at.way != none {
		return
	}
	for i := range uint8(tried) {
		way := (at.next + i) % tried
		if at.ways&order[way] == 0 || int32(at.due[way]-at.blocks) > 0 {
			continue
		}
		if at.candidate = at.flipped(order[way], base); at.candidate != at.best {
			at.way, at.block, at.voids, at.lead = way, 0, 0, 0
			return
		}
	}
}

// flipped is the best scheme without a way, or with it, and so for those that go with it.
func (at *lesson) flipped(way, base Scheme) Scheme {
	switch {
	case way == Defer && at.best.has(Defer):
		at.deferring = at.best
		return base & Adapt
	case way == Defer:
		return at.deferring
	case !at.best.has(Defer), way == Interleave && !at.best.has(GetsFirst):
		return at.best
	case way == GetsFirst && at.best.has(GetsFirst):
		return at.best &^ (GetsFirst | Interleave)
	case way == GetsFirst:
		return at.best | base&(GetsFirst|Interleave)
	}
	return at.best ^ way
}

// epochs is how many the next block has.
func (at *lesson) epochs() int32 {
	size := int(at.size)
	if at.way != none {
		size = max(size-max(shortPairs-int(at.block/2), 0), 0)
	}
	return 1 << size
}

// scheme is that of the next block.
func (at *lesson) scheme() Scheme {
	if at.way != none && at.candidateFirst() == (at.block%2 == 0) {
		return at.candidate
	}
	return at.best
}

// candidateFirst tells the order of the pair at hand.
func (at *lesson) candidateFirst() bool {
	p := at.pattern
	turn := turns[(at.way+p.kinds+p.operations+p.bytes)%uint8(len(turns))]
	return turn>>(at.block/2%8)&1 != 0
}

// measured learns from a block, and tells how much longer a pair took for the candidate.
func (at *lesson) measured(took time.Duration) (lost time.Duration) {
	at.blocks++
	if at.way == none {
		at.resize(took)
		return 0
	}
	if at.block%2 == 0 {
		at.first = took
		at.block++
		return 0
	}
	best, candidate := at.first, took
	if at.candidateFirst() {
		best, candidate = candidate, best
	}
	short := at.block/2 < shortPairs && at.size > 0
	at.block, at.voids = at.block+1, 0
	// An interrupted block does not count for many.
	most := 4 * min(best, candidate)
	if at.size > 0 {
		most = min(most, 2*longBlock)
	}
	if short {
		switch {
		case candidate > 8*best:
			at.conclude(4, farGap)
		case candidate > 2*best:
			at.conclude(1, farGap)
		}
	} else {
		at.resize(best)
		at.vote(best, candidate)
	}
	return min(max(candidate-best, -most), most)
}

// vote counts what a pair tells, and concludes the trial if that is enough.
func (at *lesson) vote(best, candidate time.Duration) {
	before := at.lead
	switch {
	case candidate > best+best/8:
		at.lead -= 2
	case candidate+candidate/8 < best:
		at.lead += 2
	case candidate+candidate/64 < best:
		at.lead++
	default:
		at.lead--
	}
	enough := int8(adopt)
	if at.size == 0 {
		enough = adoptSingle
	}
	switch {
	case at.lead >= enough && at.lead > before:
		at.best, at.gap[at.way] = at.candidate, firstGap
		at.giveUp()
	case at.lead <= -reject && (at.size == 0 || at.block/2 > shortPairs+1):
		at.conclude(1, lostGap)
	case at.block/2 >= mostPairs:
		at.giveUp()
	}
}

// conclude ends a trial, whose way comes again after its gap. That widens.
func (at *lesson) conclude(by, most uint8) {
	at.due[at.way] = at.blocks + 1<<at.gap[at.way]
	at.gap[at.way] = min(at.gap[at.way]+by, most)
	at.next = (at.way + 1) % tried
	at.way = none
}

// giveUp ends a trial, if there is one, which has told nothing against its way.
func (at *lesson) giveUp() {
	if at.way != none {
		at.conclude(0, lostGap)
	}
}

// void drops a pair of which a block was of other patterns.
func (at *lesson) void() {
	at.block &^= 1
	if at.voids++; at.voids >= mostVoids && at.way != none {
		at.conclude(1, lostGap)
	}
}

// cut drops a pair of which a block was longer than the phase of the program.
func (at *lesson) cut() {
	at.void()
	at.size = max(at.size, 2) - 1
}

// resize makes blocks that are too long or too short half or twice as long.
func (at *lesson) resize(took time.Duration) {
	switch {
	case took > longBlock && at.size > 0:
		at.size--
	case took < shortBlock && at.size < mostEpochs:
		at.size++
	}
}
