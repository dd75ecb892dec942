package world

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

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

// A rank that cannot get acquainted with another, for which it waits, asks again now and then only. A call that
// has to map memory of that ends at once, with the reason.
func TestRefusedAcquaintance(t *testing.T) {
	done := make(chan struct{})
	require.NoError(t, Run(t.Context(), 2, func(ctx context.Context, w *World) error {
		if w.rank == 1 {
			<-done
			return nil
		}
		defer close(done)
		m := &refusingMapper{Mapper: w.home.mapper, refused: w.addressOf(1)}
		w.Exclude(func() { w.home.mapper, w.apart = m, true })
		defer w.Exclude(func() {
			w.aside.running.Wait()
			w.home.mapper, w.apart = m.Mapper, false
		})
		wait := w.NewWaiter()
		defer wait.Finish()
		const looked = 3 * askApart
		for begun := time.Now(); time.Since(begun) < looked; {
			if w.acquainted(1) {
				return errors.New("acquainted")
			}
			_ = wait.Pause(ctx)
		}
		// One more may be on its way.
		if n := m.asked.Load(); n < 1 || n > int64(looked/askApart)+1 {
			t.Errorf("asked %d times", n)
		}
		if err := w.Barrier(ctx); !errors.Is(err, errNoMapping) {
			t.Errorf("error of Barrier is %v, want %v", err, errNoMapping)
		}
		return nil
	}))
}
