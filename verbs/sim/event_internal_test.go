package sim

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/onesided/rma/internal/testsize"
)

// planned is what orders an event.
type planned struct {
	at    time.Duration
	tie   uint32
	order uint64
}

// The schedule gives events in the order of time, tie and scheduling, whatever is added
// while others are taken.
func TestScheduleIsAnOrder(t *testing.T) {
	for seed := range testsize.Samples(t, 200) {
		random := rand.New(rand.NewPCG(seed, 1))
		s := schedule{seed: seed}
		var model []planned
		var now time.Duration
		for range 300 {
			if random.IntN(3) > 0 || len(model) == 0 {
				at, lane := now+time.Duration(random.IntN(5)), uint32(random.IntN(4))
				s.add(at, lane, evPort).number = s.ordered
				model = append(model, planned{at: at, tie: tie(seed, at, lane), order: s.ordered})
				continue
			}
			first := slices.MinFunc(model, func(a, b planned) int {
				return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.tie, b.tie), cmp.Compare(a.order, b.order))
			})
			model = slices.DeleteFunc(model, func(e planned) bool { return e.order == first.order })
			at, _ := s.next()
			e, slot := s.take()
			if at != first.at || e.number != first.order {
				t.Fatalf("seed %d: took event %d at %v, want %d at %v", seed, e.number, at, first.order, first.at)
			}
			s.giveBack(slot)
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
			e, slot := s.take()
			lane := e.number % 3
			if e.number < last[lane] {
				t.Fatalf("seed %d: event %d of lane %d came after %d", seed, e.number, lane, last[lane])
			}
			last[lane] = e.number
			order = append(order, byte('0'+lane))
			s.giveBack(slot)
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
	waiting := map[int]*task{}
	for i := range 5000 {
		switch random.IntN(3) {
		case 0, 1:
			w := &task{number: i, lane: uint32(i), deadline: time.Duration(random.IntN(100))}
			d.add(w)
			waiting[i] = w
		default:
			for number, w := range waiting {
				d.remove(w)
				d.remove(w)
				delete(waiting, number)
				break
			}
		}
		for i := range d.heap {
			e := &d.heap[i]
			w := waiting[int(e.task)]
			if w == nil || w.deadline != e.at || d.places[e.task] != int32(i) || i > 0 && e.before(&d.heap[(i-1)/4]) {
				t.Fatalf("place %d holds %v of a task of place %d", i, *e, d.places[e.task])
			}
		}
		if len(d.heap) != len(waiting) {
			t.Fatalf("%d deadlines, %d tasks wait", len(d.heap), len(waiting))
		}
	}
}
