package scheduler

import "time"

// A Learner chooses the scheme of the coming epochs on one target from the times of earlier ones. An epoch lies between
// two calls that complete all operations on the target: a flush, an unlock, a fence, a complete.
//
// The Learner measures the time from one completion to the next, which is what the program waits for. This includes
// computation that overlaps with operations, and the target's part in it. A single epoch says nothing on a machine with
// other load. So epochs form blocks under one scheme, and alternating blocks of two schemes are compared in pairs. Slow
// changes affect both blocks of a pair, and an interruption affects one pair of several. The loss by trials is bounded:
// trials continue only while there is time to spare for them.
//
// A Learner has no clock and no goroutine, and allocates nothing. It must not be used by several goroutines at once.
type Learner struct {
	base, now Scheme
	// current is the index of the current block's trials. The block has size epochs from begin on, of which left
	// remain. left is 0 before the first block. If warming is set, the block has not begun: the current epoch still
	// does work that the previous one, under another scheme, left.
	current    uint8
	warming    bool
	size, left int32
	begin      time.Duration
	// last is the pattern of the last epoch. since is what left was when the current run of this pattern began within
	// the block. alike counts the epochs of the run in earlier blocks. mismatched is set if the block has several
	// patterns.
	last         Pattern
	since, alike int32
	mismatched   bool
	// spare is the time that trials may still lose. usual is the time of the last block, of whatever pattern, but at
	// most pauseBlocks times that of the block before it: what is longer contains a pause of the program.
	spare, usual time.Duration
	trials       [patterns + 1]trials
}

const (
	// patterns is the number of patterns remembered: those that had most blocks. Each new pattern takes one from the
	// weight of all, which is at most maxWeight. So a few rare patterns do not displace the others, and the patterns of
	// a past phase of the program make room in time. The additional trials mixed are for blocks with several patterns.
	patterns  = 8
	mixed     = patterns
	maxWeight = 64
	// steady is the number of consecutive epochs of one pattern that count as a phase of the program.
	steady = 8
	// Trials may lose 1/spareShare of the time outside pauses. The spare time is spareBlocks long blocks at first, and
	// at most that.
	spareShare, spareBlocks, pauseBlocks = 64, 12, 4
)

// NewLearner returns a Learner that begins with scheme s. If s contains Adapt, the Learner leaves out those single
// schemes of s that do not pay. It never uses one that is not in s.
func NewLearner(s Scheme) *Learner {
	l := &Learner{base: s, now: s, spare: spareBlocks * longBlock}
	for i := range l.trials {
		l.trials[i] = newTrials(Pattern{}, s)
	}
	return l
}

// Scheme returns the scheme of the current epoch.
func (l *Learner) Scheme() Scheme { return l.now }

// Pattern returns the pattern of the epochs that Scheme was chosen for. It is zero if Scheme is for several patterns.
func (l *Learner) Pattern() Pattern { return l.trials[l.current].pattern }

// End ends the current epoch: its operations are complete, and the next epoch begins. clock returns the time since a
// fixed moment; End calls it only where a block begins or ends. An epoch without operations does not count.
func (l *Learner) End(p Pattern, clock func() time.Duration) {
	if p == l.last && l.left > 1 {
		l.left--
		return
	}
	if l.base.has(Adapt) && p.operations > 0 {
		l.end(p, clock)
	}
}

// end ends an epoch that may be the last of its block, or differ from the one before.
func (l *Learner) end(p Pattern, clock func() time.Duration) {
	if l.left == 0 {
		l.last = p
		l.beginBlock(clock())
		return
	}
	if p != l.last {
		ended := l.alike+l.since-l.left >= steady
		l.last, l.alike, l.since = p, 0, l.left
		if ended && !l.mismatched && l.current != mixed {
			l.trials[l.current].cut()
			l.beginBlock(clock())
			return
		}
		l.mismatched = true
		l.trials[mixed].cover(p, l.base)
	}
	if l.left--; l.left > 0 {
		return
	}
	l.alike = min(l.alike+l.since, steady)
	now := clock()
	if l.warming {
		l.warming = false
		l.begin, l.left, l.since = now, l.size, l.size
		return
	}
	if at := &l.trials[l.current]; l.mismatched == (l.current == mixed) {
		took := now - l.begin
		// A pause of the program earns no time for trials: all of them would delay the epochs after it.
		l.usual = min(took, pauseBlocks*max(l.usual, longBlock))
		l.spare = min(l.spare+l.usual/spareShare-at.measured(took), spareBlocks*max(l.usual, longBlock))
		if l.spare < 0 && at.lead <= 0 {
			at.giveUp()
		}
	} else {
		at.void()
	}
	l.beginBlock(now)
}

// beginBlock begins a block.
func (l *Learner) beginBlock(now time.Duration) {
	l.current = l.selectTrials()
	at := &l.trials[l.current]
	if l.spare >= 0 {
		at.try(l.base)
	}
	scheme := at.scheme()
	l.size = at.epochs()
	l.begin, l.left, l.mismatched = now, l.size, false
	if l.warming = scheme != l.now; l.warming {
		l.now, l.left = scheme, 1
	}
	l.since = l.left
}

// selectTrials returns the index of the trials for the next epochs, which are assumed to be like the last ones. For a
// new pattern it replaces the trials with the least weight.
func (l *Learner) selectTrials() uint8 {
	if l.mismatched && l.alike < steady {
		return mixed
	}
	least := uint8(0)
	for i := range uint8(patterns) {
		at := &l.trials[i]
		if at.pattern == l.last {
			at.weight = min(at.weight+1, maxWeight)
			return i
		}
		if at.weight < l.trials[least].weight {
			least = i
		}
	}
	for i := range patterns {
		at := &l.trials[i]
		at.weight = max(at.weight, 1) - 1
	}
	l.trials[least] = newTrials(l.last, l.base)
	return least
}
