package sim

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// The schedule gives events in the order of time, tie and scheduling, whatever is added
// while others are taken.
func TestScheduleIsAnOrder(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		s := schedule{seed: seed}
		var model []entry
		var now time.Duration
		for range 300 {
			if random.IntN(3) > 0 || len(model) == 0 {
				at, lane := now+time.Duration(random.IntN(5)), uint32(random.IntN(4))
				s.add(at, lane, evPort).number = s.ordered
				model = append(model, entry{at: at, tie: tie(seed, at, lane), order: s.ordered})
				continue
			}
			first := slices.MinFunc(model, func(a, b entry) int {
				if a.before(&b) {
					return -1
				}
				return 1
			})
			model = slices.DeleteFunc(model, func(e entry) bool { return e.order == first.order })
			at, e := s.take()
			if at != first.at || e.number != first.order {
				t.Fatalf("seed %d: took event %d at %v, want %d at %v", seed, e.number, at, first.order, first.at)
			}
			now = at
		}
	}
}

// What shares a lane keeps its order at one time, under any seed; what does not is
// permuted by seeds.
func TestTiesOfOneLaneKeepTheirOrder(t *testing.T) {
	orders := map[string]bool{}
	for seed := range uint64(50) {
		s := schedule{seed: seed}
		for i := range uint64(12) {
			s.add(7, uint32(i%3), evPort).number = i
		}
		last := [3]uint64{}
		var order []byte
		for range 12 {
			_, e := s.take()
			lane := e.number % 3
			if e.number < last[lane] {
				t.Fatalf("seed %d: event %d of lane %d came after %d", seed, e.number, lane, last[lane])
			}
			last[lane] = e.number
			order = append(order, byte('0'+lane))
		}
		orders[string(order)] = true
	}
	if len(orders) != 6 {
		t.Errorf("50 seeds gave %d of the 6 orders of three lanes", len(orders))
	}
}

// Deadlines are taken soonest first, also when others leave in between.
func TestDeadlinesAreAnOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	var d deadlines
	waiting := map[*task]bool{}
	for i := range 5000 {
		switch random.IntN(3) {
		case 0, 1:
			w := &task{number: i, lane: uint32(i), deadline: time.Duration(random.IntN(100)), place: -1}
			d.add(w)
			waiting[w] = true
		default:
			for w := range waiting {
				d.remove(w)
				d.remove(w)
				delete(waiting, w)
				break
			}
		}
		for i, w := range d.heap {
			if w.place != i || !waiting[w] || i > 0 && d.before(w, d.heap[(i-1)/2]) {
				t.Fatalf("place %d holds a task of place %d that waits: %v", i, w.place, waiting[w])
			}
		}
		if len(d.heap) != len(waiting) {
			t.Fatalf("%d tasks in the heap, %d wait", len(d.heap), len(waiting))
		}
	}
}
