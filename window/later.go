package window

import (
	"fmt"

	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/internal/job"
)

// A message may come to a stripe that another rank has, which may be stopped. Who serves
// messages must not wait for it: all the others would hear nothing of this rank meanwhile.
// So what is left of the message is put off, and tried again with what its sender has
// sent behind it.

// later has a packet go on when it can, and ends it then. What its answer has so far it
// keeps.
func (s *server) later(from *job.Link, c *carrying) {
	rest := new(carrying)
	*rest = *c
	rest.answer = aside(c.answer)
	from.Later(func() (bool, error) {
		// There may be no memory any more.
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

// aside is a copy of b on an 8-byte boundary, where other messages do not make answers.
func aside(b []byte) []byte {
	copied := resized(nil, len(b))
	copy(copied, b)
	return copied
}
