package regcache

import "math"

const (
	// remembered is the number of finished lives a learner bases its choice on. watched is the number of lives it
	// watches, of which each use checks looks.
	remembered = 64
	watched    = 64
	looks      = 2
	// leastIdle and mostIdle bound the number of uses of other buffers after which a life counts as over. A life that
	// seems over is watched for doubt times as many uses.
	leastIdle = 1 << 6
	mostIdle  = 1 << 16
	doubt     = 4
	// stake is the number of registrations that may be lost at first, and part the fraction of the time of all uses
	// that may be lost in addition. hoard is the maximum number of registrations that earlier gains pay for.
	stake = 16
	part  = 1.0 / 16
	hoard = 32
	// proven times the paying number of uses prove a buffer for good.
	proven = 2
)

// A learner finds the use at which the buffers of one class of sizes are best registered.
//
// The uses of a buffer are seen whether it is copied or registered. A life of a buffer lasts from its first use until
// it has not been used for long, or its memory belongs to another buffer. So for each life the learner knows what each
// threshold would have cost: a copy for each use before it, and the registration if the life reached it. The number of
// uses of a life is known when the life is over, or when it has twice as many uses as pay. The current threshold is the
// one that would have cost least for the last 64 known lives.
//
// At first all lives are assumed to be good. So, unlike in the paper, buffers are registered at their first use until
// some are seen not to return. If a fifth of the lives end at once, the paper's quarter is better. This order loses
// least: late registration costs as much as the copies until then, for each buffer. But buffers that will be used often
// cannot be told from others in advance. So a registration before the paying number of uses is a debt. Uses of
// registered buffers pay it back. The debt is bounded by some registrations and a small part of the time of all uses.
// At the bound, buffers are registered only when it is certain that it would have paid. That loses at most the
// registration of each buffer (paper B's 100 %).
//
// The number of uses of other buffers after which a life is over is learned too: nearly all lives continue before it. A
// life that counted as over too early, as a later use shows, counts as good.
type learner struct {
	// using, copying and registering are in picoseconds, so that sums are exact.
	using, copying, registering int64
	// thresholds are those of Always to Never.
	thresholds [speculations - 1]int
	// enough is the number of uses that prove a life.
	enough uint32
	// costs are what the known lives would have cost by each threshold.
	costs [speculations - 1]int64
	// known has the numbers of uses of the known lives. The latest is that of life number last.
	known [remembered]uint32
	last  uint32
	// now counts the uses of lives that are not proven. idle is the number of such uses that end a life.
	now, idle uint32
	// debt is the cost of registrations that were not certain to pay, less what uses of registered buffers have saved.
	// took is the time of all uses.
	debt, took int64
	lives      [watched]life
	// next is the index of the life to be replaced next, look that of the life to be checked next.
	next, look uint8
}

// A life is a watched life of a buffer. The address is 0 in an unused record.
type life struct {
	address uint64
	// uses is the number of its uses, last the time of the last use.
	uses, last uint32
	// known is its number among the known lives, 0 if it is not known.
	known uint32
	// active is set while the life does not seem over.
	active bool
}

func newLearner(uses int, using, copying, registering float64) *learner {
	l := &learner{using: picoseconds(using), copying: picoseconds(copying), registering: picoseconds(registering), enough: uint32(proven * uses), idle: leastIdle}
	for i := range l.thresholds {
		l.thresholds[i] = (Always + Speculation(i)).Threshold(uses)
	}
	for range l.known {
		l.know(l.enough)
	}
	return l
}

// picoseconds converts and rounds. The result is bounded so that sums cannot overflow.
func picoseconds(ns float64) int64 { return int64(math.Round(min(ns*1000, 1<<52))) }

// threshold returns the currently best threshold; of several, the first in the order of speculations.
func (l *learner) threshold() int {
	best := 0
	for i, cost := range l.costs {
		if cost < l.costs[best] {
			best = i
		}
	}
	if best < certain && !l.solvent() {
		best = certain
	}
	return l.thresholds[best]
}

// certain is the index of the threshold at which a registration is certain to have paid.
const certain = int(Full - Always)

// solvent reports whether another registration may be lost.
func (l *learner) solvent() bool {
	return l.debt+l.registering <= stake*l.registering+int64(float64(l.took)*part)
}

// speculate records that a buffer is about to be registered.
func (l *learner) speculate() { l.debt += l.registering }

// spared records that a buffer is not registered after all.
func (l *learner) spared() { l.debt -= l.registering }

// used records a use of a life: the buffer's address, the number of its uses, and the time of its last use. number is
// its watch number, 0 if it is not watched. registered says whether the buffer was registered. It returns the new time
// and the new watch number.
func (l *learner) used(address uint64, uses, last uint32, number uint8, registered bool) (lastNow uint32, numberNow uint8) {
	l.now++
	l.took += l.using
	if registered {
		l.debt = max(l.debt-l.copying, -hoard*l.registering)
	} else {
		l.took += l.copying
	}
	if uses == 1 {
		number = l.watch(address)
	} else {
		l.wait(l.now - last)
		number = l.watched(address, uses, number)
	}
	for range looks {
		l.check(&l.lives[l.look])
		l.look = (l.look + 1) % watched
	}
	return l.now, number
}

// wait learns from a life that had its next use after a number of uses.
func (l *learner) wait(uses uint32) {
	if uses > l.idle {
		l.idle = min(2*l.idle, mostIdle)
	} else {
		l.idle = max(l.idle-l.idle/64, leastIdle)
	}
}

// watch starts to watch a life if a record is free, and returns its watch number, or 0.
func (l *learner) watch(address uint64) uint8 {
	y := &l.lives[l.next]
	l.next = (l.next + 1) % watched
	if y.active || y.address != 0 && l.now-y.last <= doubt*l.idle {
		return 0
	}
	*y = life{address: address, uses: 1, last: l.now, active: true}
	if l.next == 0 {
		return watched
	}
	return l.next
}

// watched records another use of a life, and returns its new watch number.
func (l *learner) watched(address uint64, uses uint32, number uint8) uint8 {
	y := l.life(address, number)
	switch {
	case y == nil:
		return 0
	case uses >= l.enough:
		l.end(y, uses)
		y.address = 0
		return 0
	case !y.active:
		l.resume(y)
	}
	y.uses, y.last = uses, l.now
	return number
}

// check detects whether a life seems over.
func (l *learner) check(y *life) {
	switch {
	case y.address == 0 || y.active == (l.now-y.last <= l.idle):
	case y.active:
		l.end(y, y.uses)
	default:
		l.resume(y)
	}
}

// over records that the memory of a life belongs to another buffer, or was deregistered.
func (l *learner) over(address uint64, number uint8) {
	if y := l.life(address, number); y != nil {
		if y.active {
			l.end(y, y.uses)
		}
		y.address = 0
	}
}

// life returns the watched life of a number if it still is that of the buffer, and nil otherwise.
func (l *learner) life(address uint64, number uint8) *life {
	if number == 0 || l.lives[number-1].address != address {
		return nil
	}
	return &l.lives[number-1]
}

// resume counts a life that seemed over as a good one.
func (l *learner) resume(y *life) {
	l.end(y, l.enough)
	y.active = true
}

// end records a life with a number of uses.
func (l *learner) end(y *life, uses uint32) {
	if y.active = false; y.known != 0 && l.last-y.known < remembered {
		l.set(y.known, uses)
		return
	}
	l.know(uses)
	y.known = l.last
}

// know adds a life in the place of the oldest.
func (l *learner) know(uses uint32) {
	l.last++
	l.set(l.last, uses)
}

// set sets the number of uses of a known life.
func (l *learner) set(number, uses uint32) {
	known := &l.known[number%remembered]
	for i, threshold := range l.thresholds {
		l.costs[i] += l.cost(threshold, int(uses)) - l.cost(threshold, int(*known))
	}
	*known = uses
}

// cost returns the cost of uses uses by a threshold.
func (l *learner) cost(threshold, uses int) int64 {
	if threshold == 0 || uses < threshold {
		return int64(uses) * l.copying
	}
	return int64(threshold-1)*l.copying + l.registering
}
