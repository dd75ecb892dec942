package job

import (
	"context"

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
	switch key := l.key(memory); {
	case key != 0 || opcode == verbs.OpRDMAWrite && len(memory) <= l.mostInline():
		return l.moveAs(ctx, opcode, memory, key, holding{}, remote, offset)
	default:
		return l.origins().move(ctx, l, opcode, memory, remote, offset)
	}
}

// moveAs moves memory that the card knows by a key, or that goes inline. held is given back when
// all of it has completed, or could not be sent.
func (l *Link) moveAs(ctx context.Context, opcode verbs.Opcode, memory []byte, key uint32, held holding, remote verbs.RemoteRegion, offset uint64) error {
	limit := l.card.attributes.MaxMessage
	for begun := false; len(memory) > 0; begun = true {
		part := memory[:min(len(memory), limit)]
		if err := l.enter(ctx, false); err != nil {
			l.letGo(held, begun)
			return err
		}
		r := l.request(opcode, part, key, remote, offset)
		if opcode == verbs.OpRDMAWrite && len(part) <= l.mostInline() {
			r.Flags |= verbs.Inline
		}
		memory, offset = memory[len(part):], offset+uint64(len(part))
		if len(memory) == 0 {
			l.hold(held)
		}
		l.leave(len(part))
	}
	return nil
}

// tryWrite is Write, of as much as is one message, by one who comes again if there is no room. Where the card does
// not know the memory it waits.
func (l *Link) tryWrite(ctx context.Context, from []byte, to verbs.RemoteRegion, offset uint64) (wrote bool, err error) {
	key := l.key(from)
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
func (l *Link) letGo(held holding, begun bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if begun && l.broken.Load() == nil {
		l.hold(held)
	} else {
		held.giveBack()
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

// key is how the card knows memory that the program need not have registered, or has; 0 if it does
// not.
func (l *Link) key(memory []byte) uint32 {
	if key := l.card.attributes.ReservedLKey; key != 0 {
		return key
	}
	if known := l.world.registered.find(memory, verbs.LocalWrite); known != nil {
		return known.lkey(l.card.kind)
	}
	return 0
}

// Registers tells whether the card knows only memory that it was told of.
func (l *Link) Registers() bool { return l.card.attributes.ReservedLKey == 0 }

// Use notes that memory will be written from, or else read into, and tells whether it goes as it is:
// the card knows it, or is going to be told because it is used frequently, or it goes along with the
// request.
func (l *Link) Use(memory []byte, write bool) bool {
	if l.key(memory) != 0 || write && len(memory) <= l.mostInline() {
		return true
	}
	return l.origins().use(memory)
}

// Unknown is about how much longer it takes to write so many bytes that the card does not know than
// others, in nanoseconds.
func (l *Link) Unknown(bytes int) float64 {
	if !l.Registers() {
		return 0
	}
	_, moving, _ := l.origins().extra(bytes)
	return moving
}

// Blocks cuts so many bytes into messages of longest bytes at most, which the target combines with what it
// has while others come: as takes the least time on the link's card, or all long if the job's tuning leaves
// transfer.Superpipeline out.
func (l *Link) Blocks(bytes, longest int) transfer.Blocks {
	if l.world.settings.tuning.NoProtocols.Has(transfer.Superpipeline) {
		return transfer.LongBlocks(bytes, longest)
	}
	return l.card.model.Blocks(bytes, longest)
}
