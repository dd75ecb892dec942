package window

import (
	"fmt"

	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/internal/job"
)

// A message may need a stripe that another rank has, and that rank may be stopped. The goroutine that serves messages
// must not wait for it: the messages of all other ranks would wait, too. So the rest of the message is postponed. It is
// tried again before later messages of its sender.

// later postpones the rest of a packet, and ends the packet when that is done. It keeps the response so far.
func (s *server) later(from *job.Link, c *carrying) {
	rest := new(carrying)
	*rest = *c
	rest.answer = aside(c.answer)
	from.Later(func() (bool, error) {
		// The memory may be freed.
		if s.ended.Load() {
			rest.refused = fmt.Errorf("a packet that waited for others: %w", ErrClosed)
		} else if !rest.goOn() {
			return false, nil
		}
		if err := rest.end(from); err != nil {
			return true, errtext.Errorf("window: %w", err)
		}
		return true, nil
	})
}

// aside returns a copy of b on an 8-byte boundary, which no other message uses.
func aside(b []byte) []byte {
	copied := resized(nil, len(b))
	copy(copied, b)
	return copied
}
