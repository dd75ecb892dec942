package eventchannel_test

import (
	"fmt"
	"sync/atomic"

	"github.com/onesided/rma/internal/eventchannel"
)

func Example() {
	b := eventchannel.New()
	var come atomic.Bool
	go func() {
		come.Store(true)
		b.RingIfHeard()
	}()
	for !come.Load() {
		ticket := b.Prepare()
		// From here on a change is followed by a ring.
		if !come.Load() {
			b.Sleep(ticket, -1)
		}
		b.Finish()
	}
	fmt.Println("it has come")
	// Output: it has come
}
