package job

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
)

// onCores is a machine of so many cores.
func onCores(cores int) Option { return func(s *Settings) { s.cores = cores } }

// A rank that waits for one that waits itself says whom that waits for, and what the last of them is in.
func TestStraggler(t *testing.T) {
	const n, absent = 4, 2
	calls := map[string]func(ctx context.Context, w *World) error{
		"Barrier":   func(ctx context.Context, w *World) error { return w.Barrier(ctx) },
		"Broadcast": func(ctx context.Context, w *World) error { return Broadcast(ctx, w, absent, make([]int, 1)) },
	}
	for name, call := range calls {
		for _, cores := range []int{n, 1} {
			t.Run(fmt.Sprintf("%s on %d cores", name, cores), func(t *testing.T) {
				t.Parallel()
				var told atomic.Int32
				ctx, cancel := context.WithTimeout(t.Context(), await.Limit)
				defer cancel()
				require.NoError(t, Run(ctx, n, func(ctx context.Context, w *World) error {
					block := make([]byte, MeetingBytes)
					m := w.NewMeeting(w.NewNumber(), block, NoTally, func(int) ([]byte, error) { return block, nil })
					defer m.Close()
					if err := w.Barrier(ctx); err != nil {
						return err
					}
					// Waits of one length that begin together would look at each other only while each has just begun.
					patience := 50 * time.Millisecond
					for seen := false; w.rank != absent && told.Load() < n-1; {
						short, stop := context.WithTimeout(ctx, patience) // expires
						patience += patience / 2
						err := call(short, w)
						stop()
						if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
							return fmt.Errorf("error is %v", err)
						}
						if !seen && strings.Contains(err.Error(), "rank 2") && strings.HasSuffix(err.Error(), " is in window.Fence") {
							seen = true
							told.Add(1)
						}
					}
					return errors.Join(m.Meet(ctx, "window.Fence", 0, 1), call(ctx, w), w.Barrier(ctx))
				}, append(apart(), onCores(cores), seekingSoon)...))
			})
		}
	}
}

// What a rank is in is believed of a rank of the World, which is another.
func TestSeek(t *testing.T) {
	fence := func(number uint32, s straggler) *plight {
		m := &Meeting{world: new(World), number: 5}
		p := m.plight("window.Fence", number)
		p.straggler = s
		return &p
	}
	here := fence(7, straggler{rank: -1})
	for name, c := range map[string]struct {
		word uint64
		want straggler
	}{
		"nothing":               {0, straggler{rank: 1}},
		"the same":              {fence(7, straggler{rank: -1}).word(), straggler{rank: 1}},
		"the same, for another": {fence(7, straggler{2, callBarrier}).word(), straggler{2, callBarrier}},
		"the same, for this":    {fence(7, straggler{0, callBarrier}).word(), straggler{rank: 1}},
		"the same, for nobody":  {fence(7, straggler{3, callBarrier}).word(), straggler{rank: 1}},
		"the one before":        {fence(6, straggler{2, callBarrier}).word(), straggler{1, here.call}},
		"another":               {(&plight{callBarrier, here.mark, straggler{rank: 2}}).word(), straggler{1, callBarrier}},
		"all bits":              {^uint64(0), straggler{1, 1<<callBits - 1}},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, Run(t.Context(), 3, func(ctx context.Context, w *World) error {
				if w.rank != 0 {
					return nil
				}
				l, err := w.ledgerOf(1)
				if err != nil {
					return err
				}
				l.plight.Store(c.word)
				wait := w.NewWaiter()
				wait.seek(*here, 1)
				found := wait.found(1)
				noted := plightOver(w.ledger.plight.Load())
				wait.Finish()
				if found != c.want || noted != (plight{here.call, here.mark, c.want}) || w.ledger.plight.Load() != 0 {
					return fmt.Errorf("found %+v, want %+v; noted %+v", found, c.want, noted)
				}
				_ = callName(found.in)
				return nil
			}))
		})
	}
}
