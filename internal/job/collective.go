package job

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"github.com/onesided/rma/internal/errtext"
)

// calls name the collectives in signatures.
const (
	callBroadcast uint32 = iota + 1
	callGather
	callAllGather
	callScatter
	callAllToAll
	callReduce
	callAllReduce
	callBarrier
	callSplit
	callJoin
	// callWindow is the one of package window in which a window is made.
	callWindow
)

// callNames has behind the collectives those calls that meet apart from them.
var callNames = [...]string{"nothing that is known here", "Broadcast", "Gather", "AllGather", "Scatter", "AllToAll", "Reduce", "AllReduce", "Barrier", "Split", "Split",
	"window.Allocate or Create", "window.Fence", "window.Close"}

// The bits of a call from opShift on are the number of an Op, if it has one.
const opShift = 16

func callName(call uint32) string {
	number, call := call>>opShift, call&(1<<opShift-1)
	switch {
	case call >= uint32(len(callNames)):
		return callNames[0]
	case number > 0:
		return fmt.Sprintf("%sOp by %v", callNames[call], Op(number-1))
	}
	return callNames[call]
}

// A round is one collective call of this rank. A World has one, which is used again
// for each call, and keeps what one that its context cut short has done already:
// the same call, made again, steps over the exchanges that are done and goes on in
// the one that is not.
type round struct {
	w         *World
	op        string
	signature signature
	// history is a hash of all calls, this one included; before is without it.
	history, before uint64
	// step counts the exchanges of this call, done those that are over, and begun those that an earlier call had
	// begun with which this one goes on.
	step, done, begun int
	out, in           parcel
	// sent tells that the note of the exchange at hand was sent, carried that its parcels are over.
	sent, carried bool
	memory        []uint64
	// lastElement describes elements of lastType.
	lastType    reflect.Type
	lastElement *elementType
	// parts are those of a total that is halved.
	parts      []part
	unfinished bool
	// ended: the call has returned, and not panicked.
	ended bool
	// since is when it began, if that is traced.
	since time.Duration
}

// keptMemory bounds, in bytes, what a World keeps between calls.
const keptMemory = 1 << 20

// begin starts a collective on elements of T, of which each rank gives or gets n.
// It is followed by end and leave.
func begin[T any](ctx context.Context, w *World, op string, call uint32, root, n int) (*round, error) {
	if err := w.take(ctx, op); err != nil {
		return nil, err
	}
	if err := start[T](w, op, call, root, n); err != nil {
		w.collective.Unlock()
		return nil, err
	}
	return &w.round, nil
}

// start is begin for who has entered.
func start[T any](w *World, op string, call uint32, root, n int) error {
	element, err := elementIn[T](&w.round)
	if err != nil {
		return errtext.Errorf("%s: %w", errtext.Call("world", op), err)
	}
	return w.round.begin(op, element, signature{call: call, number: w.calls.Load() + 1,
		root: uint32(root), element: uint32(element.size), kind: element.kind, part: uint64(n) * uint64(element.size)})
}

func (r *round) begin(op string, element *elementType, s signature) error {
	if r.unfinished && s != r.signature {
		return r.refuse(op)
	}
	if err := r.w.lost(op, s.number); err != nil {
		return r.w.post.giveUp(&r.out, err)
	}
	if r.unfinished {
		// It was cut short in that exchange.
		r.begun = r.done + 1
	} else {
		r.signature, r.done, r.begun, r.sent, r.carried = s, 0, 0, false, false
		r.history = s.after(r.before)
		r.w.publish(&s, element)
	}
	r.op, r.step, r.unfinished, r.ended, r.since = op, 0, true, false, r.w.BeginSpan()
	return nil
}

// refuse is the error of a call that cannot come before an unfinished one.
func (r *round) refuse(op string) error {
	if err := r.w.lost(op, r.w.calls.Load()+1); err != nil {
		return r.w.post.giveUp(&r.out, err)
	}
	return fmt.Errorf("%s: %w: %s was cut short, call it again with the same arguments first", errtext.Call("world", op), ErrUnfinished, r.op)
}

// end ends the call, with its error.
func (r *round) end(err error) error {
	r.ended = true
	if err != nil {
		return err
	}
	r.unfinished, r.before = false, r.history
	if 8*len(r.memory) > keptMemory {
		r.memory = nil
	}
	r.w.calls.Store(r.signature.number)
	return nil
}

// leave lets the next call in. Package window reports its calls itself. A call whose combine ended it by a panic cannot go
// on: nothing is the same call.
func (r *round) leave() {
	defer r.w.collective.Unlock() // also if the hook panics
	if r.signature.call != callWindow {
		r.w.EndSpan(r.op, r.since)
	}
	if !r.ended {
		r.signature.call = 0
	}
}

// away reports whether an earlier call, which was cut short and is continued by this one, has begun the next exchange. The
// buffer which that exchange sends must not be written any more: a link may still read it.
func (r *round) away() bool { return r.step < r.begun }

// nobody is the rank of an exchange in one direction only.
const nobody = -1

// exchange sends out to rank to and receives in from rank from. It tells whether it
// did so now, and not in an earlier call that this one goes on with.
func (r *round) exchange(ctx context.Context, to int, out []byte, from int, in []byte) (now bool, err error) {
	return r.exchangeAdding(ctx, to, out, from, in, nil)
}

// exchangeAdding is exchange in which what is received is added.
func (r *round) exchangeAdding(ctx context.Context, to int, out []byte, from int, in []byte, add *addition) (now bool, err error) {
	r.step++
	if r.step <= r.done {
		return false, nil
	}
	sends, reads := r.w.noted(to, len(out)), r.w.noted(from, len(in))
	if sends && !r.sent {
		if err := r.sendNote(ctx, to, out); err != nil {
			return true, err
		}
		r.sent = true
	}
	if (!sends && to != nobody || !reads && from != nobody) && !r.carried {
		if err := r.carry(ctx, r.unless(sends, to), out, r.unless(reads, from), in, add); err != nil {
			return true, err
		}
		r.carried = true
	}
	if reads {
		if err := r.readNote(ctx, from, in, add); err != nil {
			return true, err
		}
	}
	r.sent, r.carried = false, false
	r.done++
	return true, nil
}

// unless is a rank, or nobody.
func (r *round) unless(not bool, rank int) int {
	if not {
		return nobody
	}
	return rank
}

// carry is the part of an exchange that goes in parcels.
func (r *round) carry(ctx context.Context, to int, out []byte, from int, in []byte, add *addition) error {
	r.out.aim(r, to, out)
	r.in.aim(r, from, in)
	if r.in.addition = (addition{}); add != nil {
		r.in.addition = *add
	}
	if err := r.w.post.exchange(ctx, r.op, &r.out, &r.in); err != nil {
		return err
	}
	r.out, r.in = parcel{}, parcel{}
	return nil
}

// send and receive are exchanges in one direction.
func (r *round) send(ctx context.Context, to int, out []byte) error {
	_, err := r.exchange(ctx, to, out, nobody, nil)
	return err
}

func (r *round) receive(ctx context.Context, from int, in []byte) error {
	_, err := r.exchange(ctx, nobody, nil, from, in)
	return err
}

// aim sets the parcel up, or, when the exchange was cut short, only its data.
func (p *parcel) aim(r *round, rank int, data []byte) {
	if rank == nobody {
		return
	}
	p.data = data
	if !p.active {
		p.active, p.rank = true, rank
		p.header = header{r.signature, uint64(len(data)) | r.w.post.markOf(rank, len(data)), r.history}
	}
}

// span is part number first, and the n-1 after it, of parts of the length of n
// elements each.
func span[T any](parts []T, length, first, n int) []T { return parts[first*length:][:n*length] }

// relative is rank counted from root, absolute its inverse.
func (r *round) relative(rank, root int) int { return (rank - root + r.w.size) % r.w.size }
func (r *round) absolute(me, root int) int   { return (me + root) % r.w.size }

// checkRoot checks the arguments that calls with a root share.
func checkRoot(w *World, op string, root int) error {
	if err := made(w, op); err != nil {
		return err
	}
	if root < 0 || root >= w.size {
		return fmt.Errorf("world: %s: %w: root %d, %s", op, ErrArgument, root, errtext.Allowed(w.size-1))
	}
	return nil
}

// checkParts checks that all has n elements for each of parts.
func checkParts(op, name string, all, n, parts int) error {
	if all%parts != 0 || all/parts != n {
		return fmt.Errorf("world: %s: %w: %s has %s, must have %d for each of %s", op, ErrArgument, name, errtext.Count(all, "element"), n, errtext.Count(parts, "rank"))
	}
	return nil
}

// byFunction is the operation that calls a function, which Reduce and AllReduce take.
func byFunction[T any](w *World, op string, combine func(a, b T) T) (by operation[T], err error) {
	if err := made(w, op); err != nil {
		return by, err
	}
	if combine == nil {
		return by, nilArgument(op, "combine")
	}
	by.combine = combine
	return by, nil
}

// relocate copies elements from one place of this rank to another.
func relocate[T any](r *round, into, from []T) int {
	n := copy(into, from)
	r.w.Copied(len(bytesOf(into[:n])))
	return n
}
