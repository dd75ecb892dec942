// Package kerneltest runs kernels on the ranks of jobs of all kinds.
//
//	var small = kerneltest.Register("small", func(ctx context.Context, r *kernel.Rank) error { … })
//
//	func TestMain(m *testing.M) { jobtest.Main(m) }
//
//	func TestKernel(t *testing.T) { kerneltest.Run(t, small) }
package kerneltest

import (
	"context"
	"io"
	"testing"

	"github.com/onesided/rma/examples/internal/formtest"
	"github.com/onesided/rma/examples/internal/kernel"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/world"
)

// Register names the body of a kernel, whose results nobody reads, as jobtest.Register names bodies.
func Register(name string, run func(ctx context.Context, r *kernel.Rank) error) string {
	return jobtest.Register(name, func(ctx context.Context, w *world.World) error {
		return run(ctx, kernel.Of(w, io.Discard))
	})
}

// Run runs bodies among 1, 2 and 3 ranks: goroutines, with and without memory of each other, and processes, which
// share memory, talk over TCP, or both. A plain run has some of these combinations for each body (see formtest).
func Run(t *testing.T, names ...string) {
	t.Helper()
	formtest.Run(t, [3]int{1, 2, 3}, names...)
}
