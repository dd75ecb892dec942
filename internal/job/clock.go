package job

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"time"
)

// Now returns the time on the clock that measures this job.
func (w *World) Now() time.Duration { return w.home.device.Now() }

// Virtual reports whether the time of this World is that of a simulator.
func (w *World) Virtual() bool { return w.virtual() }

// virtual tells that time is.
func (w *World) virtual() bool { return w.charger != nil }

// Compute keeps this rank's processor busy for d on the clock of Now.
func (w *World) Compute(d time.Duration) { w.engine.Compute(d) }

// Copied is called where this rank has copied n bytes on behalf of an operation. In virtual
// time it takes as long as the profile says.
func (w *World) Copied(n int) {
	if w.charger != nil && n > 0 {
		w.charger.Copied(n)
	}
}

// A within is a context that ends by the clock of a rank's card. Nothing is woken when it
// does: who waits finds it so when it looks, which a Waiter does before it sleeps.
type within struct {
	context.Context
	world *World
	until time.Duration
	// asks: it bounds a question of the library within a wait.
	asks bool
}

// within gives as long from now, and no longer than ctx.
func (w *World) within(ctx context.Context, limit time.Duration) context.Context {
	return &within{ctx, w, w.Now() + limit, false}
}

// asking is within for a question of the library.
func (w *World) asking(limit time.Duration) context.Context {
	return &within{context.Background(), w, w.Now() + limit, true}
}

func (c *within) Err() error {
	if err := c.Context.Err(); err != nil {
		return err
	}
	if c.world.Now() < c.until {
		return nil
	}
	return context.DeadlineExceeded
}

// inOrder gives a map in the order of its keys: what is sent in that order is, in virtual
// time, the same in each run.
func inOrder[K cmp.Ordered, V any](m map[K]V) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			if value, ok := m[key]; ok && !yield(key, value) {
				return
			}
		}
	}
}
