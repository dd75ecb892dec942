package job

import (
	"context"

	"github.com/onesided/rma/internal/registration"
	"github.com/onesided/rma/scheduler/transfer"
	"github.com/onesided/rma/verbs"
)

// Write places from in the rank's memory at offset of a region. from belongs to the
// link until Flush or Settle returns. It waits for room no longer than ctx lasts, and may
// have written a part then.
func (l *Link) Write(ctx context.Context, from []byte, to verbs.RemoteRegion, offset uint64) error {
	return l.move(ctx, verbs.OpRDMAWrite, from, to, offset)
}

// Read fills into from the rank's memory at offset of a region, by the time that
// Flush or Settle returns. As to ctx it is as Write.
func (l *Link) Read(ctx context.Context, into []byte, from verbs.RemoteRegion, offset uint64) error {
	return l.move(ctx, verbs.OpRDMARead, into, from, offset)
}

func (l *Link) move(ctx context.Context, opcode verbs.Opcode, memory []byte, remote verbs.RemoteRegion, offset uint64) error {
	c, write := l.card.memory, opcode == verbs.OpRDMAWrite
	key := c.Key(memory)
	if key != 0 || write && len(memory) <= l.mostInline() {
		return l.moveAs(ctx, opcode, memory, key, registration.Hold{}, remote, offset)
	}
	plan := c.Plan(memory, write)
	if hold, ok := plan.Whole(); ok {
		return l.moveAs(ctx, opcode, memory, hold.Key(), hold, remote, offset)
	}
	return l.movePlanned(ctx, opcode, &plan, remote, offset)
}

// movePlanned moves memory in the pieces of a plan: while one is on the wire the next is copied or registered.
func (l *Link) movePlanned(ctx context.Context, opcode verbs.Opcode, plan *registration.Plan, remote verbs.RemoteRegion, offset uint64) error {
	protocol, begun := plan.Protocol(), l.world.BeginSpan()
	defer func() { l.world.endStep(protocol.String(), begun) }()
	// sent are the last pieces that were registered for this once, of which there were so many.
	var sent [registration.MaxDepth]uint64
	for registered := 0; plan.More(); {
		if depth := plan.Depth(); depth > 0 && registered >= depth {
			// What was registered first ends, when it is on the wire no more.
			if err := l.reap(ctx, sent[registered%depth]); err != nil {
				return err
			}
		}
		piece := plan.Next()
		if now := plan.Protocol(); now != protocol {
			l.world.endStep(protocol.String(), begun)
			protocol, begun = now, l.world.BeginSpan()
		}
		var err error
		if piece.Copied {
			err = l.stage(ctx, opcode, piece.Memory, piece.AtOnce, remote, offset)
		} else {
			err = l.moveAs(ctx, opcode, piece.Memory, piece.Hold.Key(), piece.Hold, remote, offset)
			if depth := plan.Depth(); err == nil && depth > 0 && plan.More() {
				sent[registered%depth], err = l.leaves()
				registered++
			}
		}
		if err != nil {
			return err
		}
		offset += uint64(len(piece.Memory))
	}
	return nil
}

// moveAs moves memory that the card knows by a key, or that goes inline. hold is released when
// all of it has completed, or could not be sent.
func (l *Link) moveAs(ctx context.Context, opcode verbs.Opcode, memory []byte, key uint32, hold registration.Hold, remote verbs.RemoteRegion, offset uint64) error {
	limit := l.card.attributes.MaxMessage
	for begun := false; len(memory) > 0; begun = true {
		part := memory[:min(len(memory), limit)]
		if err := l.enter(ctx, false); err != nil {
			l.letGo(hold, begun)
			return err
		}
		r := l.request(opcode, part, key, remote, offset)
		if opcode == verbs.OpRDMAWrite && len(part) <= l.mostInline() {
			r.Flags |= verbs.Inline
		}
		memory, offset = memory[len(part):], offset+uint64(len(part))
		if len(memory) == 0 {
			l.hold(holding{hold: hold})
		}
		l.leave(len(part))
	}
	return nil
}

// tryWrite is Write, of as much as is one message, by one who comes again if there is no room. Where the card does
// not know the memory it waits.
func (l *Link) tryWrite(ctx context.Context, from []byte, to verbs.RemoteRegion, offset uint64) (wrote bool, err error) {
	key := l.card.memory.Key(from)
	if key == 0 || len(from) > l.card.attributes.MaxMessage {
		return true, l.Write(ctx, from, to, offset)
	}
	l.mu.Lock()
	if err = l.fault(); err == nil && l.room(false) {
		l.request(verbs.OpRDMAWrite, from, key, to, offset)
		l.leave(len(from))
		return true, nil
	}
	if err == nil {
		l.post(true)
	}
	l.mu.Unlock()
	return false, err
}

// letGo gives back what a move needs of which no more is sent: when the part that has begun, if one has,
// has completed.
func (l *Link) letGo(hold registration.Hold, begun bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if begun && l.broken.Load() == nil {
		l.hold(holding{hold: hold})
	} else {
		hold.Release()
	}
}

// request is a write or read behind the others. It is called with the mutex.
func (l *Link) request(opcode verbs.Opcode, memory []byte, key uint32, remote verbs.RemoteRegion, offset uint64) *verbs.SendRequest {
	r, b := l.next(opcode)
	r.RemoteAddress, r.RKey = remote.Address+offset, remote.RKey
	b.segment[0] = verbs.Segment{Memory: memory, LKey: key}
	if opcode == verbs.OpRDMAWrite {
		l.unpolled += len(memory)
	}
	return r
}

// Registers tells whether the card knows only memory that it was told of.
func (l *Link) Registers() bool { return l.card.memory.NeedsKeys() }

// Use notes that memory will be written from, or else read into, and tells whether it goes as it is:
// the card knows it, or is going to be told because it is used frequently, or it goes along with the
// request.
func (l *Link) Use(memory []byte, write bool) bool {
	c := l.card.memory
	return c.Key(memory) != 0 || write && len(memory) <= l.mostInline() || c.Use(memory)
}

// Unknown is about how much longer it takes to write so many bytes that the card does not know than
// others, in nanoseconds.
func (l *Link) Unknown(bytes int) float64 { return l.card.memory.Excess(bytes) }

// Blocks cuts so many bytes into messages of longest bytes at most, which the target combines with what it
// has while others come: as takes the least time on the link's card, or all long if the job's tuning leaves
// transfer.Superpipeline out.
func (l *Link) Blocks(bytes, longest int) transfer.Blocks {
	if l.world.settings.tuning.NoProtocols.Has(transfer.Superpipeline) {
		return transfer.LongBlocks(bytes, longest)
	}
	return l.card.memory.Model().Blocks(bytes, longest)
}
