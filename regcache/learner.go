package regcache

import "math"

const (
	// remembered is how many lives a learner goes by, and watched how many it has an eye on, of
	// which it looks at some with each use.
	remembered = 64
	watched    = 64
	looks      = 2
	// leastIdle and mostIdle bound for how many uses a life goes on without one, and doubt is for
	// how many times as many one that seems over is watched still.
	leastIdle = 1 << 6
	mostIdle  = 1 << 16
	doubt     = 4
	// stake is how many registrations may be lost from the beginning, and part which part of the time of
	// all uses; hoard is how many are paid for by others at most.
	stake = 16
	part  = 1.0 / 16
	hoard = 32
	// proven is how many times as many uses as pay have a buffer be worth it for good.
	proven = 2
)

// A learner finds out at which use the buffers of one class of sizes are best registered.
//
// Whatever is done with a buffer, its uses are seen. So of a life of it, from its first use until
// it has not been used for long or its memory is another's, one knows what each threshold would
// have cost: a copy for each use before, and the registration if it came to that. A life is known when it is
// over, or has twice as many uses as pay. The threshold of now is the one that would have cost least
// for the last 64 lives that are known.
//
// At first all of them are taken for good ones. So, unlike in the paper, buffers are registered at their first
// use until some are seen not to come again: if a fifth of the lives end at once, the paper's
// quarter is better. That is where least is lost. A buffer that is registered late for lack of trust costs
// as much as copying it so long, each of them does. But nobody can tell many buffers that will come again
// often from such as won't before they have. So what is registered before it has been used as often as
// pays is a debt, that its uses pay back, and those of others. There is no more of it
// than some registrations and a small part of the time that all uses have taken: while there is, buffers
// are registered when it is certain that it would have paid. That loses no more than the registration
// of each, whatever comes (paper B's 100 %).
//
// After how many uses of others a life is over is learned too, from those after which lives go on: nearly all do
// so before. One that seems over too early, by what is known later, or is used once more, is taken
// for a good one.
type learner struct {
	// using, copying and registering are in picoseconds, so that sums are exact.
	using, copying, registering int64
	// thresholds are those of Always to Never.
	thresholds [speculations - 1]int
	// enough uses prove a life.
	enough uint32
	// costs are what the lives that are known would have cost by each threshold.
	costs [speculations - 1]int64
	// known are the numbers of uses of these lives, and the last of them is that of life number last.
	known [remembered]uint32
	last  uint32
	// now counts the uses of what is not proven, and idle is how many of them end a life.
	now, idle uint32
	// debt is what registrations have cost that were not certain to pay, less what uses of registered
	// buffers have saved. took is what uses have taken.
	debt, took int64
	lives      [watched]life
	// next is the one to be replaced next, look the one to be looked at next.
	next, look uint8
}

// A life is one that is watched. It is of none if its address is 0.
type life struct {
	address uint64
	// uses are how many it has, and last is when the last of them was.
	uses, last uint32
	// known is which of the lives that are known it is, or has been: 0 if none.
	known uint32
	// going tells that it does not seem over.
	going bool
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

// picoseconds are rounded, and not so many that sums of them could overflow.
func picoseconds(ns float64) int64 { return int64(math.Round(min(ns*1000, 1<<52))) }

// threshold is the best of now; of several the first, which is the least but for never.
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

// certain is the threshold of what is certain to have paid.
const certain = int(Full - Always)

// solvent tells whether another registration may be lost.
func (l *learner) solvent() bool {
	return l.debt+l.registering <= stake*l.registering+int64(float64(l.took)*part)
}

// speculate tells that a buffer is about to be registered.
func (l *learner) speculate() { l.debt += l.registering }

// spared tells that it is not.
func (l *learner) spared() { l.debt -= l.registering }

// used tells of a use of a life: the buffer's address, the number of its uses, when the last of them was,
// the number by which it is watched, 0 if it is not, and whether it was registered. It gives the
// last use and the number as they are now.
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

// wait learns from a life that came again after so many uses.
func (l *learner) wait(uses uint32) {
	if uses > l.idle {
		l.idle = min(2*l.idle, mostIdle)
	} else {
		l.idle = max(l.idle-l.idle/64, leastIdle)
	}
}

// watch has a life be watched, if there is one that need not be any more, and gives its number.
func (l *learner) watch(address uint64) uint8 {
	y := &l.lives[l.next]
	l.next = (l.next + 1) % watched
	if y.going || y.address != 0 && l.now-y.last <= doubt*l.idle {
		return 0
	}
	*y = life{address: address, uses: 1, last: l.now, going: true}
	if l.next == 0 {
		return watched
	}
	return l.next
}

// watched tells of another use of a life, and gives its number as it is now.
func (l *learner) watched(address uint64, uses uint32, number uint8) uint8 {
	y := l.life(address, number)
	switch {
	case y == nil:
		return 0
	case uses >= l.enough:
		l.end(y, uses)
		y.address = 0
		return 0
	case !y.going:
		l.resume(y)
	}
	y.uses, y.last = uses, l.now
	return number
}

// check finds whether a life seems over.
func (l *learner) check(y *life) {
	switch {
	case y.address == 0 || y.going == (l.now-y.last <= l.idle):
	case y.going:
		l.end(y, y.uses)
	default:
		l.resume(y)
	}
}

// over tells that the memory of a life is another's, or was deregistered.
func (l *learner) over(address uint64, number uint8) {
	if y := l.life(address, number); y != nil {
		if y.going {
			l.end(y, y.uses)
		}
		y.address = 0
	}
}

// life is the one of a number, if it is that of a buffer still.
func (l *learner) life(address uint64, number uint8) *life {
	if number == 0 || l.lives[number-1].address != address {
		return nil
	}
	return &l.lives[number-1]
}

// resume takes a life that seemed over for a good one.
func (l *learner) resume(y *life) {
	l.end(y, l.enough)
	y.going = true
}

// end has a life be known by so many uses.
func (l *learner) end(y *life, uses uint32) {
	if y.going = false; y.known != 0 && l.last-y.known < remembered {
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

// set has a life that is known have so many uses.
func (l *learner) set(number, uses uint32) {
	known := &l.known[number%remembered]
	for i, threshold := range l.thresholds {
		l.costs[i] += l.cost(threshold, int(uses)) - l.cost(threshold, int(*known))
	}
	*known = uses
}

// cost is that of so many uses by a threshold.
func (l *learner) cost(threshold, uses int) int64 {
	if threshold == 0 || uses < threshold {
		return int64(uses) * l.copying
	}
	return int64(threshold-1)*l.copying + l.registering
}
