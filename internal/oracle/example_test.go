package oracle_test

import (
	"context"
	"fmt"

	"github.com/onesided/rma/internal/oracle"
	"github.com/onesided/rma/world"
)

// Three ranks draw tickets from a counter, in any order. No two may get the same ticket, which the model checks.
func Example() {
	p, err := oracle.Parse(`
		ranks 3
		window int64 counts=1,0,0
		phase
		sync w0 lockall
		0 fetch w0 int64 op=sum on=0 fill=1
		1 fetch w0 int64 op=sum on=0 fill=1
		2 fetch w0 int64 op=sum on=0 fill=1
		2 refused put w0 int64 on=0 at=1 n=1    # there is only element 0
	`)
	if err != nil {
		fmt.Println(err)
		return
	}
	err = world.Run(context.Background(), p.Ranks, func(ctx context.Context, w *world.World) error {
		return oracle.Run(ctx, w, p, oracle.Options{})
	})
	fmt.Println("three tickets:", err)

	random := oracle.Draw(1, oracle.Limits{Ranks: 2, Windows: 1, Phases: 1})
	err = world.Run(context.Background(), random.Ranks, func(ctx context.Context, w *world.World) error {
		return oracle.Run(ctx, w, random, oracle.Options{Concurrent: true})
	})
	fmt.Println("a random program:", err)
	// Output:
	// three tickets: <nil>
	// a random program: <nil>
}
