package device

import (
	"context"
	"slices"

	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/verbs/sim"
	"github.com/onesided/rma/world"
)

// Simulate is [world.Simulate] without warnings about calls that wait long. Seconds of virtual time are no sign of a
// fault, and a job whose ranks all wait ends with an error.
func Simulate(ctx context.Context, s *sim.Simulator, ranks int, body func(ctx context.Context, w *world.World) error, options ...world.Option) error {
	return world.Simulate(ctx, s, ranks, body, append(slices.Clone(options), world.WithStall(0))...)
}

// IsVirtual reports whether time is virtual for the ranks of w.
func IsVirtual(w *world.World) bool { return job.Of(w).Device().Attributes().Virtual }
