package job

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// The root of an oversubscribed job says who has not come, of those that map its memory and of those that send messages.
func TestMissingAtRoot(t *testing.T) {
	const n, absent = 4, 2
	for name, options := range map[string][]Option{"mapped": nil, "apart": apart()} {
		t.Run(name, func(t *testing.T) {
			ended, end := context.WithCancel(t.Context())
			end()
			var come atomic.Int32
			said := make(chan struct{})
			require.NoError(t, Run(t.Context(), n, func(ctx context.Context, w *World) error {
				for rank := range w.size {
					if _, err := w.Neighbor(rank); w.Mapped(rank) && err != nil {
						return err
					}
				}
				if err := w.Barrier(ctx); err != nil {
					return err
				}
				switch w.rank {
				case 0:
					defer close(said)
					if err := until(ctx, w, "others have come", func() bool {
						return come.Load() == n-2 && (w.Mapped(1) || w.barrier.arrivals[1].Load() == 2 && w.barrier.arrivals[3].Load() == 2)
					}); err != nil {
						return err
					}
					if err := w.Barrier(ended); !errors.Is(err, context.Canceled) || !strings.HasSuffix(err.Error(), ": it waits for rank 2") {
						return fmt.Errorf("error is %v", err)
					}
				case absent:
					<-said
				default:
					err := w.Barrier(ended)
					come.Add(1)
					if !errors.Is(err, context.Canceled) {
						return fmt.Errorf("error is %v", err)
					}
				}
				return nil
			}, append(options, onCores(1), sleeping(forever))...))
		})
	}
}

// A call that its context has cut short says whom it waits for without connecting with anyone for that: one that has
// stopped would not answer.
func TestMissingConnectsNobody(t *testing.T) {
	const n, caller = 4, 3
	for _, cores := range []int{n, 1} {
		t.Run(fmt.Sprintf("%d cores", cores), func(t *testing.T) {
			ended, end := context.WithCancel(t.Context())
			end()
			called := make(chan struct{})
			require.NoError(t, Run(t.Context(), n, func(ctx context.Context, w *World) error {
				if w.rank != caller {
					<-called
					return nil
				}
				defer close(called)
				if err := w.Barrier(ended); !errors.Is(err, context.Canceled) {
					return fmt.Errorf("error is %v", err)
				}
				if w.neighbors[1].Load() != nil {
					return errors.New("it has connected with rank 1, which it neither tells nor hears of")
				}
				return nil
			}, onCores(cores), sleeping(forever)))
		})
	}
}
