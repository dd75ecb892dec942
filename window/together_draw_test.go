package window_test

import (
	"math/rand/v2"
	"slices"

	"github.com/onesided/rma/window"
)

// Programs of several goroutines of each rank that share a window. They are drawn from a
// seed, the same on every rank, and carried out on a model while they are drawn, one after
// the other: each puts to and gets from places of its own, and what they all share they
// combine in ways whose outcome does not depend on the order.
const (
	// crew is how many goroutines of a rank share a window.
	crew = 3
	// sums are elements that everybody adds to.
	sumsAt, sumsCount = 0, 64
	// At ticketsAt everybody draws tickets, and adds 1 to the element of the ticket.
	ticketsAt, ticketsMost = sumsAt + sumsCount, 400
	// The pair is changed under exclusive locks only, both elements at once.
	pairAt = ticketsAt + 1 + ticketsMost
	// Behind that each program has elements that it accumulates to in order, short places and
	// a long one, which it puts to and gets from.
	ownAt        = pairAt + 2
	orderedCount = 6
	shortCount   = 16
	shortPlaces  = 6
	longCount    = 5000
	ownCount     = orderedCount + shortPlaces*shortCount + longCount
	// noticeSlots are the notification slots.
	noticeSlots = 2
)

// An act is a step of a program.
type act struct {
	call   string
	op     window.Op
	target int
	at     int
	values []int64
	// compare is what CompareAndSwap compares with, slot the one of PutNotify.
	compare int64
	slot    int
	// want is what the act reads, if that does not depend on others.
	want []int64
}

// A section is acts under one lock; of all targets in an epoch of LockAll.
type section struct {
	kind   window.LockKind
	target int
	acts   []act
}

// A model is the parts of all ranks, and the notifications that each gets.
type model struct {
	parts   [][]int64
	notices [][noticeSlots]uint64
}

func newModel(ranks int) *model {
	m := &model{make([][]int64, ranks), make([][noticeSlots]uint64, ranks)}
	for rank := range m.parts {
		m.parts[rank] = make([]int64, ownAt+ranks*crew*ownCount)
	}
	return m
}

// The ways to lock: all ranks by one call, single ranks for several goroutines together, and
// single ranks for one goroutine.
const (
	lockedAll = iota
	lockedTogether
	lockedAlone
	lockings
)

// program draws the sections of a program, which owns places by its number.
func (m *model) program(random *rand.Rand, number, locking int) []section {
	sections := make([]section, 1+random.IntN(10))
	for i := range sections {
		s := &sections[i]
		s.kind, s.target = window.Shared, random.IntN(len(m.parts))
		if locking == lockedAlone && random.IntN(2) == 0 {
			s.kind = window.Exclusive
		}
		for range random.IntN(9) {
			if locking == lockedAll {
				s.target = random.IntN(len(m.parts))
			}
			s.acts = append(s.acts, m.act(random, number, s))
		}
	}
	return sections
}

// act draws an act and carries it out.
func (m *model) act(random *rand.Rand, number int, s *section) act {
	part := m.parts[s.target]
	own := ownAt + number*ownCount
	a := act{target: s.target}
	switch kind := random.IntN(12); {
	case kind < 6:
		a.place(random, own+orderedCount)
		if kind < 3 {
			a.call = pick(random, "Get", "RGet")
			a.want = slices.Clone(part[a.at:][:len(a.values)])
			break
		}
		a.call = pick(random, "Put", "RPut", "PutNotify")
		copy(part[a.at:], a.values)
		if a.call == "PutNotify" {
			a.slot = random.IntN(noticeSlots)
			m.notices[a.target][a.slot]++
		}
	case kind == 6:
		a.call, a.op, a.at = pick(random, "Accumulate", "RAccumulate"), window.Sum, sumsAt
		count := sumsCount
		if random.IntN(3) > 0 {
			count = 1 + random.IntN(5)
			a.at += random.IntN(sumsCount - count)
		}
		a.values = drawn(random, count)
		for i, v := range a.values {
			part[a.at+i] += v
		}
	case kind < 10:
		a.ordered(random, own, part)
	case kind == 10 && s.kind == window.Exclusive:
		a.call = "pair"
		part[pairAt]++
		part[pairAt+1]++
	case part[ticketsAt] < ticketsMost:
		a.call = "ticket"
		part[ticketsAt]++
		part[ticketsAt+int(part[ticketsAt])] = 1
	default:
		a.call = "flush"
	}
	return a
}

// place draws the elements of a put or a get, of a short place or of the long one.
func (a *act) place(random *rand.Rand, short int) {
	place := random.IntN(shortPlaces + 1)
	a.at = short + place*shortCount
	count, most := 1+random.IntN(shortCount), shortCount
	if place == shortPlaces {
		count, most = 1+random.IntN(longCount), longCount
	}
	a.at += random.IntN(most - count + 1)
	a.values = drawn(random, count)
}

// ordered draws an accumulate to a program's own elements, which keep the order of the program.
func (a *act) ordered(random *rand.Rand, own int, part []int64) {
	count := 1
	a.call = pick(random, "Accumulate", "RAccumulate", "GetAccumulate", "RGetAccumulate", "FetchAndOp", "CompareAndSwap")
	a.op = pick(random, window.Sum, window.Replace, window.Product, window.Max, window.NoOp)
	if a.call != "FetchAndOp" && a.call != "CompareAndSwap" {
		count = 1 + random.IntN(orderedCount)
	}
	a.at = own + random.IntN(orderedCount-count+1)
	a.values = drawn(random, count)
	was := part[a.at:][:count]
	if a.call != "Accumulate" && a.call != "RAccumulate" {
		a.want = slices.Clone(was)
	}
	if a.call == "CompareAndSwap" {
		if a.compare = was[0]; random.IntN(3) == 0 {
			a.compare++
		}
		if a.compare == was[0] {
			was[0] = a.values[0]
		}
		return
	}
	for i, v := range a.values {
		was[i] = combine(a.op, was[i], v)
	}
}

func drawn(random *rand.Rand, count int) []int64 {
	values := make([]int64, count)
	for i := range values {
		values[i] = int64(random.Uint64() >> 40)
	}
	return values
}

func pick[E any](random *rand.Rand, of ...E) E { return of[random.IntN(len(of))] }
