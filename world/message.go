package world

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
)

// headerBytes start each message, in its first letter.
const headerBytes = 48

// header says what a message is, so that ranks that call different collectives, or
// one with different arguments, notice.
type header struct {
	signature
	// length of the message, without this.
	length uint64
	// history is a hash of all calls so far.
	history uint64
}

func (h *header) encode(into []byte) {
	binary.LittleEndian.PutUint32(into[0:], h.call)
	binary.LittleEndian.PutUint32(into[4:], h.number)
	binary.LittleEndian.PutUint32(into[8:], h.root)
	binary.LittleEndian.PutUint32(into[12:], h.element)
	binary.LittleEndian.PutUint64(into[16:], h.kind)
	binary.LittleEndian.PutUint64(into[24:], h.part)
	binary.LittleEndian.PutUint64(into[32:], h.length)
	binary.LittleEndian.PutUint64(into[40:], h.history)
}

func (h *header) decode(from []byte) {
	h.call = binary.LittleEndian.Uint32(from[0:])
	h.number = binary.LittleEndian.Uint32(from[4:])
	h.root = binary.LittleEndian.Uint32(from[8:])
	h.element = binary.LittleEndian.Uint32(from[12:])
	h.kind = binary.LittleEndian.Uint64(from[16:])
	h.part = binary.LittleEndian.Uint64(from[24:])
	h.length = binary.LittleEndian.Uint64(from[32:])
	h.history = binary.LittleEndian.Uint64(from[40:])
}

// parcel is a message on its way out or in: the header, then data. Its zero value
// has nowhere to go and is finished.
type parcel struct {
	rank   int
	header header
	data   []byte
	active bool
	begun  bool
	done   int
}

func (p *parcel) finished() bool { return !p.active || p.begun && p.done == len(p.data) }

// exchange sends one parcel and receives another, side by side, so that ranks that
// send to each other do not wait for one another. When ctx has ended it may be
// called again with the same parcels.
func (o *office) exchange(ctx context.Context, op string, out, in *parcel) error {
	w := o.world
	wait := w.NewWaiter()
	defer wait.Finish()
	number, lost := out.header.number, -1
	if in.active {
		number = in.header.number
	}
	for {
		moved, err := o.carry(out, in)
		if err != nil {
			return o.failed(op, number, err)
		}
		if out.finished() && in.finished() {
			if out.active {
				o.linger(out.rank)
			}
			return nil
		}
		if moved {
			wait.restart()
			continue
		}
		if err := w.lost(op, number); err != nil {
			return err
		}
		if lost >= 0 {
			return w.gone(op, number, lost)
		}
		if wait.prepared {
			for _, p := range [...]*parcel{out, in} {
				if p.finished() {
					continue
				}
				if wait.quiet || w.Mapped(p.rank) {
					if err := w.compare(op, p.rank, &p.header.signature); err != nil {
						return err
					}
				}
				// A rank leaves when all its letters have been taken out of its
				// hands, and takes no more: what one more look does not find
				// will not come, and what has not gone will not go.
				if _, left := w.barrier.left(p.rank); left {
					lost = p.rank
				}
			}
			if lost >= 0 {
				continue
			}
		}
		if err := wait.Pause(ctx); err != nil {
			return fmt.Errorf("world: %s: %w", op, err)
		}
	}
}

// boxError is a connection that broke.
type boxError struct {
	rank  int
	cause error
}

func (e *boxError) Error() string { return fmt.Sprintf("connection with rank %d: %v", e.rank, e.cause) }
func (e *boxError) Unwrap() error { return e.cause }

// strayError is a message that came in the place of the one that was due.
type strayError struct {
	rank         int
	theirs, mine signature
}

func (e *strayError) Error() string { return fmt.Sprintf("unexpected message of rank %d", e.rank) }

// failed makes a broken connection the failure of its rank, whose end is noticed by
// the connection first, or by the watch.
func (o *office) failed(op string, number uint32, err error) error {
	var stray *strayError
	var broken *boxError
	var unaccepted *acceptError
	switch {
	case errors.As(err, &unaccepted):
		err = unaccepted
	case errors.As(err, &stray) && stray.theirs == stray.mine:
		return o.world.unlike(op, stray.rank)
	case errors.As(err, &stray):
		return o.world.disagree(op, stray.rank, &stray.theirs, &stray.mine)
	case errors.As(err, &broken) && o.world.notInTeam(broken.rank, broken.cause):
		return o.world.gone(op, number, broken.rank)
	case errors.As(err, &broken):
		o.world.catchUp()
		if err := o.world.lost(op, number); err != nil {
			return err
		}
		o.world.roster.fail(broken.rank, broken.cause)
		return o.world.lost(op, number)
	}
	return fmt.Errorf("world: %s: %w", op, err)
}

// carry moves what can move of both parcels.
func (o *office) carry(out, in *parcel) (moved bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.world.poll()
	if !out.finished() {
		if moved, err = o.send(out); err != nil {
			return moved, err
		}
	}
	for !in.finished() {
		took, err := o.take(in)
		if err != nil {
			return moved, err
		}
		if !took {
			break
		}
		moved = true
	}
	return moved, nil
}

// send puts the next letters of a parcel on their way.
func (o *office) send(p *parcel) (moved bool, err error) {
	box := o.box(p.rank)
	if box.out == nil {
		if err := o.dial(box); err != nil {
			return false, err
		}
	}
	if box.err != nil {
		return false, &boxError{p.rank, box.err}
	}
	for !p.finished() && len(o.free) > 0 {
		slot := o.free[len(o.free)-1]
		o.free = o.free[:len(o.free)-1]
		memory := o.outbox.Memory()[slot*o.letter:][:o.letter]
		n := 0
		if !p.begun {
			p.header.encode(memory)
			n = headerBytes
		}
		taken := copy(memory[n:], p.data[p.done:])
		o.world.Copied(taken)
		box.waiting = append(box.waiting, letter{slot, n + taken})
		box.sent++
		o.world.waiting++
		p.begun, p.done, moved = true, p.done+taken, true
		if err := o.dispatch(box); err != nil {
			o.giveUp(box, err)
			return moved, err
		}
	}
	return moved, nil
}

// take takes the next letter of a parcel out of its mailbox.
func (o *office) take(p *parcel) (bool, error) {
	box := o.box(p.rank)
	if len(box.letters) == 0 {
		if box.err != nil {
			return false, &boxError{p.rank, box.err}
		}
		return false, nil
	}
	l := box.letters[0]
	memory := o.letterOf(box, l)
	if !p.begun {
		if len(memory) < headerBytes {
			return false, &boxError{p.rank, fmt.Errorf("a message of %d bytes has no header", len(memory))}
		}
		var h header
		h.decode(memory)
		if h != p.header {
			return false, &strayError{p.rank, h.signature, p.header.signature}
		}
		memory = memory[headerBytes:]
		p.begun = true
	}
	if len(memory) > len(p.data)-p.done {
		return false, &boxError{p.rank, fmt.Errorf("%d bytes more than the message has", len(memory)-(len(p.data)-p.done))}
	}
	p.done += copy(p.data[p.done:], memory)
	o.world.Copied(len(memory))
	box.letters = box.letters[:copy(box.letters, box.letters[1:])]
	return true, o.postReceive(box, l.slot)
}
