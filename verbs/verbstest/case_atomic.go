package verbstest

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/onesided/rma/verbs"
)

// Atomics lose no update, whichever side makes them.
var atomicCases = []testCase{
	{"several queue pairs add", func(b *bench) {
		near, far := b.two()
		total := far.allocate(64, all)
		const requesters, each = 4, 400
		adders := make([]*adder, requesters)
		for i := range adders {
			adders[i] = near.adder(far, total)
		}
		b.together(requesters, func(i int) error { return adders[i].add(each) })
		expectCount(b, total, adders, requesters*each)
	}},
	{"several devices add", func(b *bench) {
		far := b.far()
		total := far.allocate(64, all)
		const requesters, each = 3, 400
		adders := make([]*adder, requesters)
		for i := range adders {
			adders[i] = b.near().adder(far, total)
		}
		b.together(requesters, func(i int) error { return adders[i].add(each) })
		expectCount(b, total, adders, requesters*each)
	}},
	{"several queue pairs compare and swap", func(b *bench) {
		near, far := b.two()
		total := far.allocate(64, all)
		const requesters, each = 3, 100
		adders := make([]*adder, requesters)
		for i := range adders {
			adders[i] = near.adder(far, total)
		}
		b.together(requesters, func(i int) error { return adders[i].swap(each) })
		if v := get64(total.load()[8:]); v != requesters*each {
			b.Fatalf("%d requesters swapped %d times each, and the total is %d", requesters, each, v)
		}
	}},
	{"adds and swaps of several goroutines on one queue pair", func(b *bench) {
		near, far := b.pair(sizes{MaxSends: 1024})
		total, mine := far.allocate(64, all), near.allocate(1024*8, all)
		const posters, each = 4, 100
		b.together(posters, func(i int) error {
			for k := range each {
				place := 8 * (i*each + k)
				if _, err := near.station.post(near.held(), []work{total.fetchAdd(uint64(place), 8, 1, mine.at(place, place+8))}); err != nil {
					return err
				}
			}
			return nil
		})
		near.sent(posters * each)
		expectEach(b, mine.load()[:8*posters*each])
		if v := get64(total.load()[8:]); v != posters*each {
			b.Fatalf("%d adds made %d", posters*each, v)
		}
	}},
	{"requests and the owner's CPU", func(b *bench) {
		near, far := b.two()
		b.skipUnless(near.device.Attributes().CoherentAtomics, "the device's atomics are not coherent with the CPU's")
		total := far.allocate(64, all)
		const adds, times = 2000, 200_000
		adder := near.adder(far, total)
		wait := far.begin(addStep{Area: total.handle, Offset: 8, Delta: 1 << 32, Times: times})
		b.check(adder.add(adds), "adding")
		wait()
		if v := get64(total.load()[8:]); v != times<<32+adds {
			b.Fatalf("%d adds of a device and %d of a CPU made %d and %d", adds, times, uint32(v), v>>32)
		}
	}},
	{"requests and a neighbor's CPU", func(b *bench) {
		near, far := b.two()
		b.skipUnless(near.device.Attributes().CoherentAtomics, "the device's atomics are not coherent with the CPU's")
		total := far.allocate(64, all)
		w := word(near.mapArea(total), 8)
		const adds, times = 1000, 100_000
		adder, swapper := near.adder(far, total), near.adder(far, total)
		b.together(3, func(i int) error {
			switch i {
			case 0:
				return adder.add(adds)
			case 1:
				return swapper.swap(adds / 10)
			}
			for range times {
				atomic.AddUint64(w, 1<<32)
			}
			return nil
		})
		if v := get64(total.load()[8:]); v != times<<32+adds+adds/10 {
			b.Fatalf("%d adds, %d swaps and %d adds of a CPU made %d and %d", adds, adds/10, times, uint32(v), v>>32)
		}
	}},
}

// An adder is a connection that adds to the second word of an area.
type adder struct {
	*pair
	total, mine *area
	old         []byte // what each add returned
}

const adderBatch = 8

func (r *rank) adder(to *rank, total *area) *adder {
	r.Helper()
	p, _ := connected(r, to, sizes{})
	return &adder{pair: p, total: total, mine: r.allocate(8*adderBatch, all)}
}

// held returns the queue pair, of a near rank only.
func (p *pair) held() *heldPair { return p.station.pair(p.handle) }

// add adds 1, n times.
func (a *adder) add(n int) error {
	for n > 0 {
		batch := min(n, adderBatch)
		n -= batch
		var works []work
		for i := range batch {
			w := a.total.fetchAdd(uint64(i), 8, 1, a.mine.at(8*i, 8*i+8))
			if i < batch-1 {
				w = w.silent()
			}
			works = append(works, w)
		}
		if err := a.exchange(works); err != nil {
			return err
		}
		a.old = append(a.old, a.mine.memory()[:8*batch]...)
	}
	return nil
}

// exchange posts works whose last is signalled, and waits for it.
func (a *adder) exchange(works []work) error {
	if _, err := a.station.post(a.held(), works); err != nil {
		return err
	}
	completions, err := a.station.collect(a.held().sends, 1)
	if err != nil {
		return err
	}
	last := works[len(works)-1]
	if c := completions[0]; c.ID != last.ID || c.Status != verbs.StatusSuccess {
		return fmt.Errorf("an atomic completed as %+v", c)
	}
	return nil
}

// swap adds 1, n times, by swaps that are repeated until they succeed.
func (a *adder) swap(n int) error {
	guess := uint64(0)
	for n > 0 {
		if err := a.exchange([]work{a.total.compareSwap(1, 8, guess, guess+1, a.mine.at(0, 8))}); err != nil {
			return err
		}
		now := get64(a.mine.memory())
		if now == guess {
			n--
			now++
		}
		guess = now
	}
	return nil
}

// expectCount fails the case unless every add returned another value.
func expectCount(b *bench, total *area, adders []*adder, n int) {
	b.Helper()
	if v := get64(total.load()[8:]); v != uint64(n) {
		b.Fatalf("%d adds made %d", n, v)
	}
	var old []byte
	for _, a := range adders {
		old = append(old, a.old...)
	}
	expectEach(b, old)
}

// expectEach fails the case unless the words are 0, 1, 2 and so on in any order.
func expectEach(b *bench, words []byte) {
	b.Helper()
	var values []uint64
	for i := 0; i < len(words); i += 8 {
		values = append(values, get64(words[i:]))
	}
	slices.Sort(values)
	for i, v := range values {
		if v != uint64(i) {
			b.Fatalf("of %d adds none returned %d; the next is %d", len(values), i, v)
		}
	}
}
