package job

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/verbs"
)

// refusingMapper cannot map the memory of one rank.
type refusingMapper struct {
	verbs.Mapper
	refused string
	asked   atomic.Int64
}

var errNoMapping = errors.New("too many open files")

func (m *refusingMapper) Neighbor(address string) (verbs.Neighbor, error) {
	if address == m.refused {
		m.asked.Add(1)
		return nil, errNoMapping
	}
	return m.Mapper.Neighbor(address)
}

// besideStranger has rank 0 of two do something, as long as rank 1 is there.
func besideStranger(t *testing.T, f func(ctx context.Context, w *World) error) {
	done := make(chan struct{})
	require.NoError(t, Run(t.Context(), 2, func(ctx context.Context, w *World) error {
		if w.rank == 1 {
			<-done
			return nil
		}
		defer close(done)
		return f(ctx, w)
	}))
}

// mapBy has a rank map memory of others by m, as if they were processes, until the function that it returns is called.
func mapBy(w *World, m verbs.Mapper) (end func()) {
	before := w.home.mapper
	w.Exclude(func() { w.home.mapper, w.apart = m, true })
	return func() {
		w.Exclude(func() {
			w.aside.wait()
			w.home.mapper, w.apart = before, false
		})
	}
}

// A rank that cannot get acquainted with another, for which it waits, asks again now and then only. A call that
// has to map memory of that ends at once, with the reason.
func TestRefusedAcquaintance(t *testing.T) {
	// With fewer processors than ranks rank 0 waits in a Barrier without mapping anything.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	besideStranger(t, func(ctx context.Context, w *World) error {
		m := &refusingMapper{Mapper: w.home.mapper, refused: w.addressOf(1)}
		defer mapBy(w, m)()
		wait := w.NewWaiter()
		defer wait.Finish()
		const times = 3
		begun := w.Now()
		for m.asked.Load() < times {
			if w.Acquainted(1) {
				return errors.New("acquainted")
			}
			if err := wait.Pause(ctx); err != nil {
				return err
			}
		}
		if took := w.Now() - begun; took < (times-1)*askApart {
			t.Errorf("asked %d times in %v", times, took)
		}
		if err := w.Barrier(ctx); !errors.Is(err, errNoMapping) {
			t.Errorf("error of Barrier is %v, want %v", err, errNoMapping)
		}
		return nil
	})
}

// slowMapper has a process answer late.
type slowMapper struct {
	verbs.Mapper
	answer chan struct{}
	rings  atomic.Int64
}

func (m *slowMapper) Neighbor(address string) (verbs.Neighbor, error) {
	<-m.answer
	n, err := m.Mapper.Neighbor(address)
	return countedRings{n, &m.rings}, err
}

type countedRings struct {
	verbs.Neighbor
	rings *atomic.Int64
}

func (n countedRings) Wake() {
	n.rings.Add(1)
	n.Neighbor.Wake()
}

// Who rings a process that was never met does not wait for its answer. It is rung when that comes, and at once from then on.
func TestRingOfAStranger(t *testing.T) {
	besideStranger(t, func(ctx context.Context, w *World) error {
		m := &slowMapper{Mapper: w.home.mapper, answer: make(chan struct{})}
		defer mapBy(w, m)()
		w.Ring(1)
		w.Ring(1)
		if w.Acquainted(1) || m.rings.Load() != 0 {
			t.Errorf("acquainted without an answer, %d rings", m.rings.Load())
		}
		close(m.answer)
		err := until(ctx, w, "they are acquainted", func() bool { return w.Acquainted(1) && m.rings.Load() == 1 })
		w.Ring(1)
		if m.rings.Load() != 2 {
			t.Errorf("%d rings, want 2", m.rings.Load())
		}
		return err
	})
}
