package window_test

import (
	"context"
	"fmt"

	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// A process serves a window, and a program that is started at any later time attaches to it.
func ExampleServe() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	// Both sides have the same key, in a file that RMA_SERVE_KEY_FILE names, or by world.WithKey. Without one every user of
	// this machine can connect.
	listener, err := world.Listen(ctx, "127.0.0.1:0", world.WithoutKey())
	if err != nil {
		fmt.Println(err)
		return
	}
	served := make(chan error)
	go func() {
		served <- world.Run(ctx, 1, func(ctx context.Context, w *world.World) error {
			win, err := window.Allocate[int64](ctx, w, 10, window.Seats(4))
			if err != nil {
				return err
			}
			return window.Serve(ctx, listener, win.As("counters"))
		})
	}()
	fmt.Println(count(ctx, listener.Addr().String()))
	cancel()
	<-served
	// Output: 42 <nil>
}

// count is the client: in another process, on another machine.
func count(ctx context.Context, address string) (int64, error) {
	session, err := world.Dial(ctx, address, world.WithoutKey())
	if err != nil {
		return 0, err
	}
	defer session.Close()
	win, err := window.Attach[int64](ctx, session, "counters")
	if err != nil {
		return 0, err
	}
	defer win.Close()
	if err := win.Lock(ctx, window.Shared, 0); err != nil {
		return 0, err
	}
	var is [1]int64
	for _, err := range []error{
		win.Accumulate(window.Sum, []int64{42}, 0, 3),
		win.Flush(ctx, 0),
		win.Get(is[:], 0, 3),
		win.Unlock(ctx, 0),
	} {
		if err != nil {
			return 0, err
		}
	}
	return is[0], nil
}
