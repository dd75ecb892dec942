package world_test

import (
	"sync/atomic"

	"github.com/onesided/rma/world"
)

// counting counts the messages that it serves.
type counting struct{ served atomic.Int64 }

func (c *counting) Serve(*world.Link, *world.Message, []byte) error {
	c.served.Add(1)
	return nil
}
