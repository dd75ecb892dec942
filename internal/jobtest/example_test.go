package jobtest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/internal/shadow"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// The body: each rank adds to an element of each rank, on a window that is compared with a plain copy.
var added = jobtest.Register("added", func(ctx context.Context, w *world.World) error {
	win, err := window.Allocate[int64](ctx, w, 4)
	if err != nil {
		return err
	}
	both := shadow.Of(win)
	err = win.Fence(ctx)
	for from := range w.Size() * w.Size() {
		err = errors.Join(err, both.Accumulate(from%w.Size(), window.Sum, []int64{int64(from)}, from/w.Size(), 3))
	}
	return errors.Join(err, win.Fence(ctx, window.NoSucceed), both.Check(), win.Close())
})

// A test of a call on all devices: the body, and a line that runs it everywhere. The package also needs
//
//	func TestMain(m *testing.M) { jobtest.Main(m) }
func Example() {
	TestAdded := func(t *testing.T) { jobtest.Everywhere(t, 3, added) }
	fmt.Printf("%T\n", TestAdded)
	// Output: func(*testing.T)
}
