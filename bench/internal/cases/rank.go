package cases

import (
	"context"
	"time"

	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// A Rank is a rank that measures a case.
type Rank struct {
	World *world.World
	// Repeat is the number of loops.
	Repeat int
	// Shorten divides iterations and times; 0 counts as 1.
	Shorten int
	Virtual bool // time is virtual
	// WindowOptions are those of each window.
	WindowOptions []window.Option
}

// Step returns this rank's step of a case, or nil if it only waits in the barrier.
func (r *Rank) Step(c *Case) Step {
	switch {
	case r.World.Rank() == 0:
		return c.origin
	case r.World.Rank() == 1 || c.Kind == Fence || c.Kind == Collective:
		return c.target
	}
	return nil
}

// Loop runs f iterations times on cells of size n.
func Loop(ctx context.Context, b *Buffers, f Step, n, iterations int) error {
	if f == nil {
		return nil
	}
	for range iterations {
		if err := f(ctx, b, n); err != nil {
			return err
		}
	}
	return nil
}

// VirtualIterations divides the iterations of a loop in virtual time.
const VirtualIterations = 10

// Shortened divides a number of iterations, or a time, in a shortened run. The result is at least 1.
func Shortened[T int | time.Duration](usual T, shorten int) T {
	return max(usual/T(max(shorten, 1)), 1)
}
