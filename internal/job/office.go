package job

import (
	"context"
	"errors"
	"fmt"

	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/internal/pipe"
	"github.com/onesided/rma/verbs"
)

// office carries the messages of collectives, each to a rank and in the order in which they were
// sent to it. With ranks that this one maps they go through pipes (pipes.go), with others over links
// (mail.go). A message goes in letters, the first of which has its header. Of a long one they only tell where it
// is: in memory of the sender that the receiver maps (staging.go), or of the receiver, where the sender writes
// (rendezvous.go).
//
// # Invariants
//
//   - What a rank has sent and another has not taken is bounded: by the room of a pipe, by
//     mailWindow, by stagedPieces or by landingBytes.
//   - A rank that has left has sent everything that anybody may wait for, and what has come of it
//     is taken by who looks once more.
type office struct {
	world *World
	// shape is that of pipes.
	shape pipe.Config
	// pipes are those with ranks that are mapped, nil until there is one. They belong to the
	// goroutine that is in a collective.
	pipes []*pipes
	// slabs are the memory of those that this rank writes to; of the last one, slab, so much is used.
	slabs    []*Region
	slab     *Region
	slabUsed int
	staging  staging
	// landing is where long messages are written to, nil until there is one.
	landing *Region
	// heading is where a header is that goes by mail.
	heading [headerBytes]byte

	// The rest belongs to progress.
	boxes map[int]*mailbox
	// spare are for letters that nobody waits for yet.
	spare      [][]byte
	spareBytes uint64
}

func (o *office) open(w *World) {
	o.world, o.shape, o.pipes, o.boxes = w, pipeShape(w.size), make([]*pipes, w.size), make(map[int]*mailbox)
	o.slab = new(Region)
}

// exchange sends one parcel and receives another, side by side, so that ranks that
// send to each other do not wait for one another. When ctx has ended it may be
// called again with the same parcels. After any other error what was to be sent is the caller's.
func (o *office) exchange(ctx context.Context, op string, out, in *parcel) error {
	w := o.world
	wait := w.NewWaiter()
	defer wait.Finish()
	number := out.header.number
	// missing is a parcel that its rank will not have a part in, as one more look is to find: the rank has left, or its
	// state says that it is ahead, or shrinks.
	var missing *parcel
	state := recordNone
	if in.active {
		number = in.header.number
		defer o.unwant(in)
	}
	for {
		moved, received, err := o.carry(ctx, out, in)
		if err != nil {
			return o.giveUp(out, o.failed(op, number, err))
		}
		if received && out.finished() {
			return nil
		}
		if moved {
			missing = nil
			wait.Restart()
			continue
		}
		if out.finished() && o.comes(in, &wait) {
			continue
		}
		open := func(p *parcel) bool { return p == in && !received || p == out && !out.sent() }
		if err := w.lost(op, number); err != nil {
			return o.giveUp(out, err)
		}
		switch {
		case missing == nil || !open(missing):
			missing = nil
		case state >= recordPassed:
			return o.giveUp(out, w.behind(op, missing.rank, &missing.header.signature, state))
		default:
			return o.giveUp(out, w.gone(op, number, missing.rank))
		}
		if wait.AboutToSleep() {
			for _, p := range [...]*parcel{out, in} {
				if !open(p) {
					continue
				}
				if wait.resumable() {
					wait.resume(p.header.plight())
				}
				theirs := recordNone
				if wait.Quiet() || w.Mapped(p.rank) {
					if theirs, err = w.compare(op, p.rank, &p.header.signature); err != nil {
						return o.giveUp(out, err)
					}
				}
				wait.For(p.rank)
				if wait.Long() && wait.Quiet() {
					wait.seek(p.header.plight(), p.rank)
				}
				if s := wait.Sleeper(); w.stalled(s) {
					w.reportStall(s, []int{wait.found(p.rank).rank})
				}
				// What one more look does not find of a rank that has left will not
				// come, and what it has not taken it will not take.
				if _, left := w.barrier.left(p.rank); left {
					missing, state = p, recordNone
				} else if theirs >= recordPassed {
					missing, state = p, theirs
				}
			}
			if missing != nil {
				w.catchUp()
				continue
			}
		}
		if err := wait.Pause(ctx); err != nil {
			for _, p := range [...]*parcel{in, out} {
				if open(p) {
					return fmt.Errorf("%s: %w%s", errtext.Call("world", op), err, wait.found(p.rank).waitsFor())
				}
			}
			return errtext.Errorf("%s: %w", errtext.Call("world", op), err)
		}
	}
}

// giveUp is an error after which a call does not go on. It returns when no link reads any more what was to be sent.
func (o *office) giveUp(out *parcel, err error) error {
	_ = o.settle(context.Background(), out)
	return err
}

// settle returns when no link reads any more what was to be sent, or when ctx has ended.
func (o *office) settle(ctx context.Context, out *parcel) error {
	if out.rendezvous() && out.begun && !out.finished() {
		if l := o.world.links[out.rank].Load(); l != nil {
			// It ends with the link, too.
			if err := l.delivered(ctx); cutBy(ctx, err) {
				return err
			}
		}
	}
	return nil
}

// comes reads the one word that shows whether anything has come for a parcel, as often as a wait spins
// without a Pause, and reports whether it has.
func (o *office) comes(in *parcel, wait *Waiter) bool {
	with := o.pipes[in.rank]
	if with == nil || with.in == nil {
		return false
	}
	for word, number := with.in.Look(); wait.Spin(); {
		if uint32(word.Load()) == number {
			return true
		}
	}
	return false
}

// carry moves what can move of both parcels, and tells whether all of in has been received.
func (o *office) carry(ctx context.Context, out, in *parcel) (moved, received bool, err error) {
	switch {
	case out.finished():
	case out.rendezvous():
		moved, err = o.write(ctx, out)
	case out.staged():
		moved, err = o.putStaged(out)
	case o.piped(out.rank):
		moved, err = o.put(out)
	default:
		moved, err = o.mail(out)
	}
	if err != nil || !in.active {
		return moved, true, err
	}
	took := false
	switch {
	case in.rendezvous():
		took, err = o.land(in)
	case in.staged():
		took, err = o.getStaged(in)
	case o.piped(in.rank):
		took, err = o.get(in)
	default:
		took, received, err = o.collect(in)
		return moved || took, received, err
	}
	return moved || took, in.finished(), err
}

// piped tells whether messages with a rank go through pipes.
func (o *office) piped(rank int) bool {
	return o.world.maps(rank) && !o.world.settings.tuning.NoPipes
}

// boxError is what is wrong with what a rank has sent, or where it can be sent something.
type boxError struct {
	rank  int
	cause error
}

func (e *boxError) Error() string { return fmt.Sprintf("messages of rank %d: %v", e.rank, e.cause) }
func (e *boxError) Unwrap() error { return e.cause }

// strayError is a message that came in the place of the one that was due.
type strayError struct {
	rank         int
	theirs, mine signature
}

func (e *strayError) Error() string { return fmt.Sprintf("unexpected message of rank %d", e.rank) }

// linkageError is that a rank could not be reached.
type linkageError struct {
	rank  int
	cause error
}

func (e *linkageError) Error() string { return fmt.Sprintf("reaching rank %d: %v", e.rank, e.cause) }
func (e *linkageError) Unwrap() error { return e.cause }

// failed is the error of the call of a number. A rank that keeps no rules has failed.
func (o *office) failed(op string, number uint32, err error) error {
	w := o.world
	var stray *strayError
	var broken *boxError
	var unreached *linkageError
	switch {
	case errors.As(err, &stray) && stray.theirs == stray.mine:
		return w.unlike(op, stray.rank)
	case errors.As(err, &stray):
		return w.disagree(op, stray.rank, &stray.theirs, &stray.mine)
	case errors.As(err, &broken):
		w.catchUp()
		if err := w.lost(op, number); err != nil {
			return err
		}
		w.roster.fail(broken.rank, broken.cause)
		return w.lost(op, number)
	case errors.As(err, &unreached):
		w.catchUp()
		if err := w.lost(op, number); err != nil {
			return err
		}
		if _, left := w.barrier.left(unreached.rank); left {
			return w.gone(op, number, unreached.rank)
		}
		if errors.Is(err, verbs.ErrPeerGone) {
			w.failed(unreached.rank, unreached.cause)
			return w.lost(op, number)
		}
	}
	return errtext.Errorf("%s: %w", errtext.Call("world", op), err)
}

// close gives back what an office has, when nobody uses it any more.
func (o *office) close() error {
	var err error
	if o.landing != nil {
		err = o.landing.Deregister()
	}
	for _, slab := range o.slabs {
		err = errors.Join(err, slab.Deregister(), o.world.home.device.FreeMemory(slab.Memory()))
	}
	return err
}
