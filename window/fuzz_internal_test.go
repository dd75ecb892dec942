package window

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/aggregate"
	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/epoch"
	"github.com/onesided/rma/internal/allocs"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/shm"
	"github.com/onesided/rma/world"
)

// stepBytes begin each step of a script: the message's kind, A, B, the length of its
// payload, X, and Y, little-endian.
const stepBytes = 20

// step is one of a script that sends m.
func step(m job.Message, payload []byte) []byte {
	b := []byte{m.Kind, m.A, m.B, byte(len(payload))}
	b = binary.LittleEndian.AppendUint64(b, m.X)
	b = binary.LittleEndian.AppendUint64(b, m.Y)
	return append(b, payload...)
}

// nextStep is the first message of a script, which is at least stepBytes long, and the rest.
func nextStep(script []byte) (m job.Message, payload, rest []byte) {
	m = job.Message{Kind: job.FirstKind | script[0], A: script[1], B: script[2], X: binary.LittleEndian.Uint64(script[4:]), Y: binary.LittleEndian.Uint64(script[12:])}
	n := min(int(script[3]), len(script)-stepBytes)
	return m, script[stepBytes:][:n], script[stepBytes+n:]
}

// asks reports whether a message has a response.
func asks(m *job.Message, payload []byte) bool {
	n, err := aggregate.Check(payload)
	return m.Kind == messagePacket && err == nil && n > 0
}

// notifications is how many a message brings to a window that has ended no Fence: none, if
// its sender says that it has.
func notifications(m *job.Message, payload []byte, most int) (n uint64) {
	if answer, err := aggregate.Check(payload); m.Kind != messagePacket || err != nil || answer > most {
		return 0
	}
	if m.X >= 1<<32 || !epoch.Reached(0, uint32(m.X)) {
		return 0
	}
	reader := aggregate.NewReader(payload)
	for run, ok := reader.Next(); ok; run, ok = reader.Next() {
		for i := range run.Count {
			if slot, _ := run.Operation(i); run.Kind == aggregate.Notify && slot < fuzzSlots {
				n++
			}
		}
	}
	return n
}

// elements and slots of the window that messages go to; margin and guard are what is
// around it.
const (
	fuzzElements = 10
	fuzzSlots    = 3
	fuzzMargin   = 32
	fuzzGuard    = 0x5a5a5a5a5a5a5a5a
)

// FuzzServer has a rank send any messages to a window over the memory of another. Each is
// served or refused; nothing is written beside the window, and in its control block only
// what the sender may write. The window goes on.
func FuzzServer(f *testing.F) {
	for _, n := range nonsense {
		f.Add(step(n.message, n.payload))
	}
	b := kindOfInt64
	good := [][]byte{
		step(packetMessage, slices.Concat(run(aggregate.Put, 0, 0, 8, 72, 8), run(aggregate.Get, 0, 0, 80, 0, 0))),
		step(packetMessage, run(aggregate.Accumulate, Sum, b, 16, 8, 16)),
		step(packetMessage, slices.Concat(run(aggregate.Fetch, NoOp, b, 72, 8, 0), run(aggregate.Fetch, Max, b, 8, 72, 8))),
		step(packetMessage, run(aggregate.Swap, 0, b, 8, 72, 16)),
		step(packetMessage, run(aggregate.Notify, 0, 0, 0, 2, 0)),
		step(job.Message{Kind: messagePacket, X: 1}, run(aggregate.Notify, 0, 0, 0, 2, 0)),
		step(job.Message{Kind: messageWord, A: postAt, X: 1}, nil),
		step(job.Message{Kind: messageLock, A: uint8(Exclusive), X: 1}, nil),
		step(job.Message{Kind: messageLock, A: uint8(Shared), X: 2}, nil),
		step(job.Message{Kind: messageUnlock, A: uint8(Exclusive), X: 1}, nil),
		step(job.Message{Kind: messageLock, A: uint8(Exclusive), B: lockOnce, X: 1}, run(aggregate.Accumulate, Sum, b, 16, 8, 16)),
		step(job.Message{Kind: messageLock, A: uint8(Shared), X: 1}, run(aggregate.Get, 0, 0, 80, 0, 0)),
		step(job.Message{Kind: messageGranted, X: 3}, nil),
		step(job.Message{Kind: messageComplete, X: 1, Z: 1}, run(aggregate.Get, 0, 0, 80, 0, 0)),
		step(job.Message{Kind: messageComplete, Z: 1}, run(aggregate.Put, 0, 0, 8, 72, 8)),
	}
	for _, s := range good {
		f.Add(s)
	}
	f.Add(slices.Concat(good...))
	for _, kind := range []uint8{messagePacket, messageLock, messageComplete} {
		f.Add(step(job.Message{Kind: kind, A: uint8(Shared), Z: 1}, slices.Repeat(run(aggregate.Get, 0, 0, aggregate.MaxSize, 0, 0), 15)))
	}
	for kind := reduce.Kind(0); kind < 32; kind++ {
		if kind.Valid() {
			size := kind.Size()
			f.Add(step(packetMessage, run(aggregate.Accumulate, Replace, uint8(kind), size, 80-uint64(size), (size+7)&^7)))
			f.Add(step(packetMessage, run(aggregate.Swap, 0, uint8(kind), size, 80-uint64(size), (2*size+7)&^7)))
		}
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		fabric := shm.NewFabric()
		network := world.WithNetwork(func(int) (verbs.Device, error) {
			device, err := fabric.Open()
			return struct{ verbs.Device }{device}, err
		})
		memory := slices.Repeat([]uint64{fuzzGuard}, fuzzElements+2*fuzzMargin)
		require.NoError(t, world.Run(ctx, 2, func(ctx context.Context, w *world.World) error {
			if w.Rank() == 0 {
				return sendScript(ctx, w, script)
			}
			return serveScript(ctx, w, script, memory[fuzzMargin:][:fuzzElements:fuzzElements])
		}, world.WithDevice("tcp"), network))
		require.Equal(t, slices.Repeat([]uint64{fuzzGuard}, fuzzMargin), memory[:fuzzMargin])
		require.Equal(t, slices.Repeat([]uint64{fuzzGuard}, fuzzMargin), memory[fuzzMargin+fuzzElements:])
	})
}

// sendScript sends what a script says.
func sendScript(ctx context.Context, w *world.World, script []byte) error {
	win, err := Create(ctx, w, make([]uint64, fuzzElements), Notifications(fuzzSlots))
	if err != nil {
		return err
	}
	p, err := win.core.peer(1)
	// What comes while the other rank is in Create is not compared with its fences.
	if err = errors.Join(err, w.Barrier(ctx)); err != nil {
		return err
	}
	for len(script) >= stepBytes && err == nil {
		var m job.Message
		var payload []byte
		m, payload, script = nextStep(script)
		m.Service = win.core.number
		if asks(&m, payload) {
			err = p.link.AskFor(ctx, &m, payload, anything{})
		} else {
			err = p.link.Tell(&m, payload)
		}
		var refused *job.RejectionError
		if e := p.link.Flush(ctx); !errors.As(e, &refused) {
			err = errors.Join(err, e)
		}
	}
	return errors.Join(err, w.Barrier(ctx), win.Fence(ctx), win.Fence(ctx, NoSucceed), win.Close())
}

// mostAllocated is what serving a message may allocate: as much as a message of the same link holds, and what other
// goroutines of the process allocate meanwhile. Fifteen Gets could ask for four times as much.
const mostAllocated = 256 << 10

// A metered server serves as another does, and fails if that allocates too much.
type metered struct {
	*server
	err error
}

func (m *metered) Serve(from *job.Link, message *job.Message, payload []byte) (err error) {
	if n := allocs.Of(func() { err = m.server.Serve(from, message, payload) }); n > mostAllocated {
		m.err = fmt.Errorf("to serve message %+v with % x %d bytes were allocated, allowed are %d", message, payload, n, mostAllocated)
	}
	return err
}

// serveScript is the rank that a script goes to, with its window over memory.
func serveScript(ctx context.Context, w *world.World, script []byte, memory []uint64) error {
	win, err := Create(ctx, w, memory, Notifications(fuzzSlots))
	if err != nil {
		return err
	}
	link, err := job.Of(w).Link(0)
	if err != nil {
		return err
	}
	most := link.MaxPayload()
	meter := &metered{server: win.core.server}
	job.Of(w).Serve(win.core.number, meter)
	err = errors.Join(w.Barrier(ctx), w.Barrier(ctx), meter.err)
	control, arrived := &win.core.own.control, uint64(0)
	for len(script) >= stepBytes {
		m, payload, rest := nextStep(script)
		arrived += notifications(&m, payload, most)
		script = rest
	}
	for slot := range fuzzSlots {
		arrived -= control.slot(slot).Load()
	}
	if arrived != 0 {
		err = errors.Join(err, fmt.Errorf("notifications are %d too few", int64(arrived)))
	}
	if holder := holderOf(control.exclusive().Load()); holder > 0 {
		err = errors.Join(err, fmt.Errorf("rank %d has the lock", holder))
	}
	for _, at := range []uintptr{postAt, completeAt, sharedAt, waitingAt} {
		if word := control.pair(w.Rank(), at).Load(); word != 0 {
			err = errors.Join(err, fmt.Errorf("word %d of another pair is %d", at, word))
		}
	}
	for stripe := range control.stripes {
		if holder := control.word(control.stripesAt + uintptr(stripe)*lineBytes).Load(); holder != 0 {
			err = errors.Join(err, fmt.Errorf("stripe %d is held by rank %d", stripe, int(holder)-1))
		}
	}
	return errors.Join(err, win.Fence(ctx), win.Fence(ctx, NoSucceed), win.Close())
}
