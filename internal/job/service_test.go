package job_test

import (
	"sync/atomic"

	"github.com/onesided/rma/internal/job"
)

// counting counts the messages that it serves.
type counting struct{ served atomic.Int64 }

func (c *counting) Serve(*job.Link, *job.Message, []byte) error {
	c.served.Add(1)
	return nil
}
