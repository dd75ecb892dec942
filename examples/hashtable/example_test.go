package hashtable_test

import (
	"context"
	"fmt"
	"log"

	"github.com/onesided/rma/examples/hashtable"
	"github.com/onesided/rma/world"
)

// Three ranks count the same words in one table.
func Example() {
	err := world.Run(context.Background(), 3, func(ctx context.Context, w *world.World) error {
		table, err := hashtable.New(ctx, w, hashtable.Config{Slots: 1024, RecordBytes: 64 << 10})
		if err != nil {
			return err
		}
		batch := table.NewBatch()
		for _, word := range []string{"put", "get", "put", "fence"} {
			batch.Add(word, 1)
		}
		if err := batch.Run(ctx); err != nil {
			return err
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		if w.Rank() == 0 {
			for _, word := range []string{"fence", "get", "put"} {
				count, _, err := table.Count(ctx, word)
				if err != nil {
					return err
				}
				fmt.Println(word, count)
			}
		}
		return table.Close()
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// fence 3
	// get 3
	// put 6
}
