package world

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/onesided/rma/verbs"
)

// office sends and receives the messages of collectives, each to a rank and in the
// order in which they were sent to it. A rank sends to another over the connection
// that it has made to it itself, so two that start at once need not agree on one.
//
// A message goes in letters of at most letterBytes, copied through registered
// memory on both sides. A connection has receives for inboxLetters posted; one is
// posted again when its letter has been taken, so a sender that is ahead is held
// back by the device. That, 32 KiB, is what a connection takes here beside the
// device's own.
type office struct {
	world *World

	mu       sync.Mutex
	queue    verbs.CompletionQueue
	outbox   verbs.MemoryRegion
	free     []int
	boxes    map[int]*mailbox
	incoming map[uint32]*mailbox
	polled   [16]verbs.Completion
	request  [1]verbs.SendRequest
	segment  [1]verbs.Segment
	callers  [4]verbs.ConnectionRequest
	// calls counts the collectives of this rank; only the one in progress
	// changes it.
	calls uint32
}

// mailbox is the connections with one rank.
type mailbox struct {
	rank int
	// out is the connection that this rank has made, in the one that it accepted.
	out, in verbs.QueuePair
	inbox   verbs.MemoryRegion
	// letters have come and are not taken yet: slots of inbox and lengths.
	letters []letter
	// sent counts letters to the rank that it has not received.
	sent int
	err  error
}

type letter struct{ slot, length int }

const (
	letterBytes   = 4096
	inboxLetters  = 8
	outboxLetters = 8
	queueCapacity = 1 << 12
	// headerBytes start each message, in its first letter.
	headerBytes = 24
)

// header says what a message is, so that ranks that call different collectives, or
// one with different arguments, notice.
type header struct {
	call, number, element, root uint32
	length                      uint64
}

func (h *header) encode(into []byte) {
	binary.LittleEndian.PutUint32(into[0:], h.call)
	binary.LittleEndian.PutUint32(into[4:], h.number)
	binary.LittleEndian.PutUint32(into[8:], h.element)
	binary.LittleEndian.PutUint32(into[12:], h.root)
	binary.LittleEndian.PutUint64(into[16:], h.length)
}

func (h *header) decode(from []byte) {
	h.call = binary.LittleEndian.Uint32(from[0:])
	h.number = binary.LittleEndian.Uint32(from[4:])
	h.element = binary.LittleEndian.Uint32(from[8:])
	h.root = binary.LittleEndian.Uint32(from[12:])
	h.length = binary.LittleEndian.Uint64(from[16:])
}

func (o *office) open(w *World) error {
	o.world = w
	o.boxes = make(map[int]*mailbox)
	o.incoming = make(map[uint32]*mailbox)
	var err error
	if o.queue, err = w.device.CreateCompletionQueue(queueCapacity); err != nil {
		return err
	}
	if o.outbox, err = w.device.RegisterMemory(make([]byte, outboxLetters*letterBytes), 0); err != nil {
		return err
	}
	for slot := range outboxLetters {
		o.free = append(o.free, slot)
	}
	return nil
}

// Poll does whatever protocol work can be done now and returns how much was found.
func (w *World) Poll() int {
	if !w.post.mu.TryLock() {
		return 0
	}
	defer w.post.mu.Unlock()
	return w.post.poll()
}

func (o *office) poll() int {
	n := o.world.device.PollConnections(o.callers[:])
	for _, caller := range o.callers[:n] {
		o.accept(caller)
	}
	clear(o.callers[:n])
	done := o.queue.Poll(o.polled[:])
	for i := range done {
		o.completed(&o.polled[i])
	}
	return n + done
}

// accept makes the incoming connection of the rank that a hello names.
func (o *office) accept(caller verbs.ConnectionRequest) {
	hello := caller.Hello()
	if len(hello) != 4 {
		caller.Reject(fmt.Sprintf("a hello of %d bytes names no rank", len(hello)))
		return
	}
	rank := int(binary.LittleEndian.Uint32(hello))
	if rank < 0 || rank >= o.world.size {
		caller.Reject(fmt.Sprintf("the job has no rank %d", rank))
		return
	}
	box := o.box(rank)
	if box.in != nil {
		caller.Reject(fmt.Sprintf("rank %d is connected already", rank))
		return
	}
	if err := o.acceptInto(box, caller); err != nil {
		box.err = err
		caller.Reject(err.Error())
	}
}

func (o *office) acceptInto(box *mailbox, caller verbs.ConnectionRequest) error {
	inbox, err := o.world.device.RegisterMemory(make([]byte, inboxLetters*letterBytes), verbs.LocalWrite)
	if err != nil {
		return err
	}
	box.inbox = inbox
	in, err := caller.Accept(o.config())
	if err != nil {
		return err
	}
	box.in = in
	o.incoming[in.Number()] = box
	for slot := range inboxLetters {
		if err := o.postReceive(box, slot); err != nil {
			return err
		}
	}
	return nil
}

func (o *office) config() verbs.QueuePairConfig {
	return verbs.QueuePairConfig{SendQueue: o.queue, ReceiveQueue: o.queue, MaxSends: outboxLetters, MaxReceives: inboxLetters}
}

func (o *office) postReceive(box *mailbox, slot int) error {
	memory := box.inbox.Memory()[slot*letterBytes:][:letterBytes]
	_, err := box.in.PostReceive([]verbs.ReceiveRequest{{ID: uint64(slot), Segments: []verbs.Segment{{Memory: memory, LKey: box.inbox.LKey()}}}})
	return err
}

func (o *office) box(rank int) *mailbox {
	box := o.boxes[rank]
	if box == nil {
		box = &mailbox{rank: rank}
		o.boxes[rank] = box
	}
	return box
}

// completed files a completion. The ID of a send is its slot of the outbox and, in
// the high half, the rank that it went to.
func (o *office) completed(c *verbs.Completion) {
	if box := o.incoming[c.QueuePair]; box != nil {
		switch {
		case c.Status == verbs.StatusSuccess:
			box.letters = append(box.letters, letter{int(c.ID), int(c.Bytes)})
		case box.err == nil:
			box.err = errors.Join(c.Status, box.in.Err())
		}
		return
	}
	o.free = append(o.free, int(uint32(c.ID)))
	box := o.box(int(c.ID >> 32))
	box.sent--
	if c.Status != verbs.StatusSuccess && box.err == nil {
		box.err = errors.Join(c.Status, box.out.Err())
	}
}

// parcel is a message on its way out or in: the header, then data.
type parcel struct {
	rank   int
	header header
	data   []byte
	begun  bool
	done   int
}

func (p *parcel) finished() bool { return p == nil || p.begun && p.done == len(p.data) }

// exchange sends one parcel and receives another, either of which may be nil, side
// by side, so that ranks that send to each other do not wait for one another.
func (o *office) exchange(ctx context.Context, op string, out, in *parcel) error {
	wait := o.world.NewWaiter()
	defer wait.Finish()
	gone := false
	for {
		moved, err := o.carry(ctx, out, in)
		if err != nil {
			return o.failed(op, err)
		}
		if out.finished() && in.finished() {
			return nil
		}
		if moved {
			continue
		}
		if err := o.world.anyFailure(op); err != nil {
			return err
		}
		if gone {
			return &PeerError{Rank: in.rank, Op: op, Cause: ErrLeft}
		}
		if wait.prepared && !in.finished() {
			// A rank leaves when all its letters have been taken out of its
			// hands: what one more look does not find will not come.
			if _, gone = o.world.barrier.left(in.rank); gone {
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

// failed names the rank whose connection broke: its end is noticed by the
// connection first, or by the watch.
func (o *office) failed(op string, err error) error {
	var broken *boxError
	if !errors.As(err, &broken) {
		return fmt.Errorf("world: %s: %w", op, err)
	}
	if failure := o.world.anyFailure(op); failure != nil {
		return failure
	}
	return &PeerError{Rank: broken.rank, Op: op, Cause: broken.cause}
}

// carry moves what can move of both parcels.
func (o *office) carry(ctx context.Context, out, in *parcel) (moved bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.poll()
	if !out.finished() {
		if moved, err = o.send(ctx, out); err != nil {
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
func (o *office) send(ctx context.Context, p *parcel) (moved bool, err error) {
	box := o.box(p.rank)
	if box.out == nil {
		if err := o.dial(ctx, box); err != nil {
			return false, err
		}
	}
	if box.err != nil {
		return false, &boxError{p.rank, box.err}
	}
	for !p.finished() && len(o.free) > 0 {
		slot := o.free[len(o.free)-1]
		memory := o.outbox.Memory()[slot*letterBytes:][:letterBytes]
		n := 0
		if !p.begun {
			p.header.encode(memory)
			n = headerBytes
		}
		taken := copy(memory[n:], p.data[p.done:])
		o.segment[0] = verbs.Segment{Memory: memory[:n+taken], LKey: o.outbox.LKey()}
		o.request[0] = verbs.SendRequest{ID: uint64(p.rank)<<32 | uint64(slot), Opcode: verbs.OpSend, Flags: verbs.Signalled, Segments: o.segment[:]}
		posted, err := box.out.PostSend(o.request[:])
		if errors.Is(err, verbs.ErrQueueFull) {
			return moved, nil
		}
		if posted == 0 {
			return moved, &boxError{p.rank, err}
		}
		o.free = o.free[:len(o.free)-1]
		box.sent++
		p.begun, p.done, moved = true, p.done+taken, true
	}
	return moved, nil
}

func (o *office) dial(ctx context.Context, box *mailbox) error {
	to, err := o.world.contactOf(box.rank)
	if err != nil {
		return err
	}
	hello := binary.LittleEndian.AppendUint32(nil, uint32(o.world.rank))
	box.out, err = o.world.device.Connect(to.address, hello, o.config())
	return err
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
	memory := box.inbox.Memory()[l.slot*letterBytes:][:min(l.length, letterBytes)]
	if !p.begun {
		if len(memory) < headerBytes {
			return false, &boxError{p.rank, fmt.Errorf("a message of %d bytes has no header", len(memory))}
		}
		var h header
		h.decode(memory)
		if h != p.header {
			return false, mismatch(p.rank, &h, &p.header)
		}
		memory = memory[headerBytes:]
		p.begun = true
	}
	if len(memory) > len(p.data)-p.done {
		return false, &boxError{p.rank, fmt.Errorf("%d bytes more than the message has", len(memory)-(len(p.data)-p.done))}
	}
	p.done += copy(p.data[p.done:], memory)
	box.letters = box.letters[:copy(box.letters, box.letters[1:])]
	return true, o.postReceive(box, l.slot)
}

// drain waits until every letter has been received, but by ranks that have failed
// or left.
func (o *office) drain() {
	wait := o.world.NewWaiter()
	defer wait.Finish()
	for !o.drained() {
		_ = wait.Pause(context.Background())
	}
}

func (o *office) drained() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.poll()
	for rank, box := range o.boxes {
		// What comes for a rank that closes is not taken any more.
		for _, l := range box.letters {
			_ = o.postReceive(box, l.slot)
		}
		box.letters = box.letters[:0]
		if box.sent == 0 || o.world.Failure(rank) != nil {
			continue
		}
		if _, left := o.world.barrier.left(rank); !left {
			return false
		}
	}
	return true
}
