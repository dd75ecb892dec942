package scheduler

import "time"

// A Learner chooses the scheme of the coming epochs on one target from what those so far
// took. An epoch is what lies between two calls that complete all operations on the target:
// a flush, an unlock, a fence, a complete.
//
// What it measures is the time from one completion to another, which is what the program
// waits for: computing that operations overlap with, and the target's part in it, count.
// Single epochs tell nothing on a machine that does other things, too. So epochs come in
// blocks under one scheme, and blocks of two schemes, in turns, are compared in pairs: what
// changes slowly changes both, and what interrupts one is one pair among several. What
// trials lose is bounded: they go on only as long as there is time to spare for them.
//
// It has no clock and no goroutine, allocates nothing, and is not for several goroutines at
// once.
type Learner struct {
	base, now Scheme
	// The block at hand is for a lesson. It has so many epochs from begin on, of which left
	// are to come; there was no block yet if that is 0. warming tells that it has not begun:
	// the epoch at hand still does what the last one, of another scheme, left to do.
	lesson     uint8
	warming    bool
	size, left int32
	begin      time.Duration
	// last is the pattern of the last epoch. It has been so in a row for as many as came
	// since so many were left, and for alike more, if that is all of the block. unlike tells
	// that the block has several patterns.
	last         Pattern
	since, alike int32
	unlike       bool
	// spare is what trials may lose.
	spare   time.Duration
	lessons [patterns + 1]lesson
}

const (
	// patterns is how many are remembered: those that had most blocks, each pattern that was
	// not remembered taking one from all, of at most mostWorth. So one too many in turn costs
	// the others nothing, and those of another part of the program make room in time. One
	// lesson more, mixed, is for blocks that have several.
	patterns  = 8
	mixed     = patterns
	mostWorth = 64
	// steady is how many epochs alike are a phase of the program that ends with them.
	steady = 8
	// Trials may lose one in spareShare of the time. So many long blocks are there to begin
	// with, and saved at most.
	spareShare, spareBlocks = 64, 12
)

// NewLearner makes one that begins with a scheme. If Adapt is in it, it leaves out those of
// its ways that do not pay, and never takes one that is not in it.
func NewLearner(s Scheme) *Learner {
	l := &Learner{base: s, now: s, spare: spareBlocks * longBlock}
	for i := range l.lessons {
		l.lessons[i] = newLesson(Pattern{}, s)
	}
	return l
}

// Scheme is that of the epoch at hand.
func (l *Learner) Scheme() Scheme { return l.now }

// End ends an epoch: what it began is complete, and the next one begins. The clock tells the
// time since some moment; it is read where a block begins or ends. An epoch without
// operations is none.
func (l *Learner) End(p Pattern, clock func() time.Duration) {
	if p == l.last && l.left > 1 {
		l.left--
		return
	}
	if l.base.has(Adapt) && p.operations > 0 {
		l.end(p, clock)
	}
}

// end ends an epoch that may be the last of its block, or unlike the one before.
func (l *Learner) end(p Pattern, clock func() time.Duration) {
	if l.left == 0 {
		l.last = p
		l.turn(clock())
		return
	}
	if p != l.last {
		ended := l.alike+l.since-l.left >= steady
		l.last, l.alike, l.since = p, 0, l.left
		if ended && !l.unlike && l.lesson != mixed {
			l.lessons[l.lesson].cut()
			l.turn(clock())
			return
		}
		l.unlike = true
		l.lessons[mixed].meet(p, l.base)
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
	if at := &l.lessons[l.lesson]; l.unlike == (l.lesson == mixed) {
		took := now - l.begin
		l.spare = min(l.spare+took/spareShare-at.measured(took), spareBlocks*max(took, longBlock))
		if l.spare < 0 && at.lead <= 0 {
			at.giveUp()
		}
	} else {
		at.void()
	}
	l.turn(now)
}

// turn begins a block.
func (l *Learner) turn(now time.Duration) {
	l.lesson = l.place()
	at := &l.lessons[l.lesson]
	if l.spare >= 0 {
		at.try(l.base)
	}
	scheme := at.scheme()
	l.size = at.epochs()
	l.begin, l.left, l.unlike = now, l.size, false
	if l.warming = scheme != l.now; l.warming {
		l.now, l.left = scheme, 1
	}
	l.since = l.left
}

// place is that of the lesson on what the next epochs will be: what the last ones were.
func (l *Learner) place() uint8 {
	if l.unlike && l.alike < steady {
		return mixed
	}
	least := uint8(0)
	for i := range uint8(patterns) {
		at := &l.lessons[i]
		if at.pattern == l.last {
			at.worth = min(at.worth+1, mostWorth)
			return i
		}
		if at.worth < l.lessons[least].worth {
			least = i
		}
	}
	for i := range patterns {
		at := &l.lessons[i]
		at.worth = max(at.worth, 1) - 1
	}
	l.lessons[least] = newLesson(l.last, l.base)
	return least
}
