package window

import (
	"fmt"

	"github.com/onesided/rma/world"
)

// A message may come to a stripe that another rank has, which may be stopped. Who serves
// messages must not wait for it: all the others would hear nothing of this rank meanwhile.
// So what is left of the message is put off, and tried again with what its sender has
// sent behind it.

// unapplied is what is left of an accumulate that a message asks for.
type unapplied struct {
	view *view
	op   Op
	// old is empty if nobody wants the old values; so is values, with NoOp.
	memory, values, old []byte
	offset              uint64
}

// apply applies what it can, and tells whether nothing is left.
func (u *unapplied) apply() bool {
	done := u.view.apply(u.op, u.memory, u.values, u.old, u.offset)
	u.memory, u.offset = u.memory[done:], u.offset+uint64(done)
	u.values, u.old = u.values[min(done, len(u.values)):], u.old[min(done, len(u.old)):]
	return len(u.memory) == 0
}

// later has an accumulate go on when it can, and answers then. What answer has so far it
// keeps.
func (s *server) later(from *world.Link, u unapplied, answer []byte) {
	wanted := len(u.old) > 0
	answer = aside(answer)
	u.old = answer[len(answer)-len(u.old):]
	s.try(from, func() bool {
		if !u.apply() {
			return false
		}
		if wanted {
			from.Answer(answer)
		}
		return true
	})
}

// swapLater is later for a CompareAndSwap.
func (s *server) swapLater(from *world.Link, v *view, memory, operands []byte, offset uint64) {
	size := len(memory)
	old := resized(nil, size)
	s.try(from, func() bool {
		if !v.swapServed(memory, operands[:size], operands[size:], old, offset) {
			return false
		}
		from.Answer(old)
		return true
	})
}

// try puts off what is left of a message. There may be no memory any more when it is
// tried.
func (s *server) try(from *world.Link, rest func() bool) {
	from.Later(func() (bool, error) {
		if s.ended.Load() {
			return true, fmt.Errorf("window: a message that waited for others: %w", errClosed)
		}
		return rest(), nil
	})
}

// aside is a copy of b on an 8-byte boundary, where other messages do not make answers.
func aside(b []byte) []byte {
	copied := resized(nil, len(b))
	copy(copied, b)
	return copied
}
