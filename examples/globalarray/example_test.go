package globalarray_test

import (
	"context"
	"fmt"
	"log"

	"github.com/onesided/rma/examples/globalarray"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// Three ranks count how often each digit occurs in their numbers.
func Example() {
	texts := []string{"314159", "265358", "979323"}
	err := world.Run(context.Background(), len(texts), func(ctx context.Context, w *world.World) error {
		counts, err := globalarray.New[int64](ctx, w, 10, globalarray.Blocks())
		if err != nil {
			return err
		}
		var ones []int64
		var digits []int
		for _, c := range texts[w.Rank()] {
			ones, digits = append(ones, 1), append(digits, int(c-'0'))
		}
		if err := counts.Accumulate(ctx, window.Sum, ones, digits); err != nil {
			return err
		}
		if err := counts.Sync(ctx); err != nil {
			return err
		}
		if w.Rank() == 0 {
			all := make([]int64, counts.Len())
			if err := counts.Get(ctx, all, 0); err != nil {
				return err
			}
			fmt.Println(all)
		}
		return counts.Close()
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: [0 2 2 4 1 3 1 1 1 3]
}
