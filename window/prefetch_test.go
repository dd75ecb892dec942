package window_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

func ExamplePrefetch() {
	err := world.Run(context.Background(), 1, func(ctx context.Context, w *world.World) error {
		win, err := window.Allocate[int64](ctx, w, 1000)
		if err != nil {
			return err
		}
		memory, mapped := win.Shared(0)
		if !mapped {
			return fmt.Errorf("rank 0 does not map its own memory")
		}
		memory[7], memory[703] = 1, 2
		wanted, sum := []int{703, 7, 420}, int64(0)
		for _, i := range wanted {
			window.Prefetch(&memory[i])
		}
		for _, i := range wanted {
			sum += memory[i]
		}
		fmt.Println(sum)
		return win.Close()
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: 3
}

// What is fetched stays as it is, also where another is writing it.
func TestPrefetch(t *testing.T) {
	memory := []uint64{1, 2, 3}
	for i := range memory {
		window.Prefetch(&memory[i])
		window.PrefetchWrite(&memory[i])
	}
	require.Equal(t, []uint64{1, 2, 3}, memory)
	require.Zero(t, testing.AllocsPerRun(100, func() { window.Prefetch(&memory[1]) }))
}
