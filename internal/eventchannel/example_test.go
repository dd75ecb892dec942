package eventchannel_test

import (
	"fmt"
	"sync/atomic"

	"github.com/onesided/rma/internal/eventchannel"
)

func Example() {
	c := eventchannel.New()
	var arrived atomic.Bool
	go func() {
		arrived.Store(true)
		c.WakeIfSleeping()
	}()
	for !arrived.Load() {
		ticket := c.Prepare()
		// From here on a change is followed by a wake.
		if !arrived.Load() {
			c.Sleep(ticket, -1)
		}
		c.Finish()
	}
	fmt.Println("it has arrived")
	// Output: it has arrived
}
