package kerneltest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/onesided/rma/examples/internal/kernel"
	"github.com/onesided/rma/examples/internal/kernel/kerneltest"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/world"
)

func TestMain(m *testing.M) { jobtest.Main(m) }

var counting = kerneltest.Register("counting", func(ctx context.Context, r *kernel.Rank) error {
	ranks := []int64{1}
	if err := world.AllReduceOp(ctx, r.World, ranks, ranks, world.Sum); err != nil {
		return err
	}
	r.Result("ranks", float64(ranks[0]), "")
	if ranks[0] != int64(r.Size()) {
		return fmt.Errorf("%w: %d ranks, want %d", kernel.ErrVerification, ranks[0], r.Size())
	}
	return nil
})

func ExampleRegister() {
	fmt.Println(kerneltest.Register("nothing", func(context.Context, *kernel.Rank) error { return nil }))
	// Output: nothing
}

func TestRun(t *testing.T) { kerneltest.Run(t, counting) }
