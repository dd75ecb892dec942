package eventchannel_test

import (
	"fmt"
	"sync/atomic"

	"github.com/onesided/rma/internal/eventchannel"
)

func Example() {
	c := eventchannel.New()
	var come atomic.Bool
	go func() {
		come.Store(true)
		c.WakeSleepers()
	}()
	for !come.Load() {
		ticket := c.Prepare()
		// From here on a change is followed by a ring.
		if !come.Load() {
			c.Sleep(ticket, -1)
		}
		c.Finish()
	}
	fmt.Println("it has come")
	// Output: it has come
}
