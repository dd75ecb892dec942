package world_test

import (
	"context"
	"fmt"
	"time"

	"github.com/onesided/rma/verbs/sim"
	"github.com/onesided/rma/world"
)

// Two hundred ranks meet, on cards of 2024, in virtual time: it is the same on every machine.
func ExampleSimulate() {
	profile, err := sim.ByName("ndr-2024")
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := sim.New(profile, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	err = world.Simulate(context.Background(), s, 200, func(ctx context.Context, w *world.World) error {
		// The first meeting makes the connections.
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		if w.Rank() == 7 {
			w.Compute(time.Millisecond)
		}
		begun := w.Now()
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		if waited := w.Now() - begun; w.Rank() == 0 {
			fmt.Println("rank 0 waited for rank 7:", waited > time.Millisecond/2)
		}
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: rank 0 waited for rank 7: true
}
