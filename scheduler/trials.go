package scheduler

import "time"

// trials has the best scheme for a pattern so far, and the trials of other schemes.
type trials struct {
	pattern Pattern
	// weight is how much is lost if the pattern is forgotten.
	weight uint8
	// relevant are the schemes that may matter. deferring is the best scheme with Defer.
	best, relevant, deferring Scheme
	// size is the logarithm of the number of epochs in a block, blocks the number of blocks so far.
	size   uint8
	blocks uint32
	// next is the index in order of the single scheme to try next. A single scheme may be tried when blocks has reached
	// its due, which is 1<<gap blocks after its last trial.
	next uint8
	gap  [tried]uint8
	due  [tried]uint32

	// A trial compares best with candidate, in which a single scheme is flipped. trying is the index of that in order,
	// and none outside a trial. block counts the trial's blocks, and voids its useless blocks since the last complete
	// pair. lead is the number of votes for the candidate less those against it. first is the time of the last block,
	// if that was the first of its pair.
	trying       uint8
	block, voids uint8
	lead         int8
	candidate    Scheme
	first        time.Duration
}

// The numbers were chosen by simulation: see TestLearner.
const (
	// A block lasts from shortBlock to longBlock where the length of epochs allows that. It has at most 1<<mostEpochs
	// epochs.
	shortBlock, longBlock = 100 * time.Microsecond, 200 * time.Microsecond
	mostEpochs            = 6
	// A trial ends when the candidate leads by adopt, when it trails by reject after two whole pairs, or after
	// mostPairs. A block that is shorter by an eighth counts twice. A candidate that is no better rarely leads by
	// adopt; one that trails by reject is tried again later. Blocks of a single epoch vary more, so there the lead must
	// be adoptSingle.
	adopt, adoptSingle, reject, mostPairs = 6, 10, 2, 24
	// The first shortPairs pairs are shorter, each half as long as the next. They only detect a candidate so bad that a
	// whole block of it would cost too much.
	shortPairs = 4
	// mostVoids is the number of consecutive useless blocks that ends a trial.
	mostVoids = 8
	// firstBlocks is the number of blocks without a trial, in which the length of a block is found.
	firstBlocks = 4
	// A gap doubles when its scheme has lost, until lostGap. It grows faster, until farGap, when that has lost by far.
	firstGap, lostGap, farGap = 6, 8, 12
)

const (
	tried = 6
	none  = tried
)

// order is the order in which single schemes are tried.
var order = [tried]Scheme{Early, Interleave, Pack, GetsFirst, Merge, Defer}

// pairOrders have a bit for each of eight pairs. A set bit means that the candidate comes first. Each value has four
// bits set, so that slow changes cancel. Any two values agree in four bits: where a fence ends the epochs on several
// targets, each Learner measures the trials of all, and the trials of other schemes or patterns cancel too.
var pairOrders = [...]uint8{0b10101010, 0b01100110, 0b11001100, 0b11110000, 0b01011010, 0b00111100, 0b10010110}

func newTrials(p Pattern, base Scheme) trials {
	at := trials{pattern: p, best: base, deferring: base, size: 1, trying: none}
	at.cover(p, base)
	for i := range tried {
		at.gap[i], at.due[i] = firstGap, firstBlocks
	}
	return at
}

// cover makes the trials cover epochs of pattern p too.
func (at *trials) cover(p Pattern, base Scheme) {
	at.relevant |= p.relevant & base
	if at.blocks == 0 && p.patient && base.has(Interleave) {
		at.best &^= Early
	}
}

// try begins a trial if none is in progress and one is due.
func (at *trials) try(base Scheme) {
	if at.trying != none {
		return
	}
	for i := range uint8(tried) {
		index := (at.next + i) % tried
		if at.relevant&order[index] == 0 || int32(at.due[index]-at.blocks) > 0 {
			continue
		}
		if at.candidate = at.flipped(order[index], base); at.candidate != at.best {
			at.trying, at.block, at.voids, at.lead = index, 0, 0, 0
			return
		}
	}
}

// flipped returns the best scheme with single removed or added, together with the schemes that depend on it.
func (at *trials) flipped(single, base Scheme) Scheme {
	switch {
	case single == Defer && at.best.has(Defer):
		at.deferring = at.best
		return base & Adapt
	case single == Defer:
		return at.deferring
	case !at.best.has(Defer), single == Interleave && !at.best.has(GetsFirst):
		return at.best
	case single == GetsFirst && at.best.has(GetsFirst):
		return at.best &^ (GetsFirst | Interleave)
	case single == GetsFirst:
		return at.best | base&(GetsFirst|Interleave)
	}
	return at.best ^ single
}

// epochs returns the number of epochs of the next block.
func (at *trials) epochs() int32 {
	size := int(at.size)
	if at.trying != none {
		size = max(size-max(shortPairs-int(at.block/2), 0), 0)
	}
	return 1 << size
}

// scheme returns the scheme of the next block.
func (at *trials) scheme() Scheme {
	if at.trying != none && at.candidateFirst() == (at.block%2 == 0) {
		return at.candidate
	}
	return at.best
}

// candidateFirst reports whether the candidate comes first in the current pair.
func (at *trials) candidateFirst() bool {
	p := at.pattern
	pairOrder := pairOrders[(at.trying+p.kinds+p.operations+p.bytes)%uint8(len(pairOrders))]
	return pairOrder>>(at.block/2%8)&1 != 0
}

// measured learns from a block. It returns the time that the trial has lost by the pair that the block completes; a
// gain is negative.
func (at *trials) measured(took time.Duration) (lost time.Duration) {
	at.blocks++
	if at.trying == none {
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
	single := at.epochs() == 1
	at.block, at.voids = at.block+1, 0
	// An interrupted block must not count for many.
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
	lost = candidate - best
	if single {
		// The epoch before the block was under the candidate too, if another block came between: see Learner.warming.
		lost *= 2
	}
	if lost < 0 && best > most {
		// An interruption is no gain, which would permit more trials.
		return 0
	}
	return max(min(lost, most), -most)
}

// vote counts the result of a pair, and concludes the trial if that suffices.
func (at *trials) vote(best, candidate time.Duration) {
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
		at.best, at.gap[at.trying] = at.candidate, firstGap
		at.giveUp()
	case at.lead <= -reject && (at.size == 0 || at.block/2 > shortPairs+1):
		at.conclude(1, lostGap)
	case at.block/2 >= mostPairs:
		at.giveUp()
	}
}

// conclude ends a trial and schedules the next trial of its single scheme after that scheme's gap, which it widens.
func (at *trials) conclude(by, most uint8) {
	at.due[at.trying] = at.blocks + 1<<at.gap[at.trying]
	at.gap[at.trying] = min(at.gap[at.trying]+by, most)
	at.next = (at.trying + 1) % tried
	at.trying = none
}

// giveUp ends the trial, if there is one, without a result against its single scheme.
func (at *trials) giveUp() {
	if at.trying != none {
		at.conclude(0, lostGap)
	}
}

// void drops a pair with a block of other patterns.
func (at *trials) void() {
	at.block &^= 1
	if at.voids++; at.voids >= mostVoids && at.trying != none {
		at.conclude(1, lostGap)
	}
}

// cut drops a pair with a block that was longer than the phase of the program.
func (at *trials) cut() {
	at.void()
	at.size = max(at.size, 2) - 1
}

// resize halves or doubles the length of blocks that are too long or too short.
func (at *trials) resize(took time.Duration) {
	switch {
	case took > longBlock && at.size > 0:
		at.size--
	case took < shortBlock && at.size < mostEpochs:
		at.size++
	}
}
