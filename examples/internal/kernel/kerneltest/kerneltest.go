// Package kerneltest runs kernels in jobs of every form.
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

// Register registers the body of a kernel, as jobtest.Register does. The results of the kernel are dropped.
func Register(name string, run func(ctx context.Context, r *kernel.Rank) error) string {
	return jobtest.Register(name, func(ctx context.Context, w *world.World) error {
		return run(ctx, kernel.Of(w, io.Discard))
	})
}

// Run runs bodies on 1, 2 and 3 ranks: on goroutines, with and without mapped memory, and on processes that use
// shared memory, TCP, or both. A plain run has some of these combinations for each body (see formtest).
func Run(t *testing.T, names ...string) {
	t.Helper()
	formtest.Run(t, [3]int{1, 2, 3}, names...)
}
