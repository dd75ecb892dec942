package job

import (
	"context"

	"github.com/onesided/rma/scheduler/transfer"
	"github.com/onesided/rma/verbs"
)

// What a card does not know goes through memory that it does: a piece is copied into a slot before
// it is written, or out of one when it has been read. While one is on the wire the next is copied.
//
// Invariants:
//
//   - A slot is given back by progress when its request has completed, on whichever link: who waits
//     for one and polls gets it.
//   - Of stages, of which there are few, more than half have been posted, and their completion is
//     heard of, when there are none left.
//   - What was read is where the program wants it before done says that its request has completed.

// staged are the slots of a link's requests that are outstanding: that of a request is at its number
// modulo theirs. The mutex of the link guards them.
type staged [mostSends]stagedPiece

type stagedPiece struct {
	slot slot
	// into is where what is read goes, nil of a write.
	into []byte
}

const (
	// stageBytes is how long a stage is, mostStages how many there are of a rank's.
	stageBytes = 256 << 10
	mostStages = 12
	// mostDepth is of the registered pieces of an operation.
	mostDepth = 4
)

// through moves memory through slots, in pieces as a protocol has them.
func (l *Link) through(ctx context.Context, opcode verbs.Opcode, memory []byte, protocol transfer.Protocol, remote verbs.RemoteRegion, offset uint64) error {
	pieces := l.card.model.Cut(protocol, opcode == verbs.OpRDMAWrite, len(memory))
	for len(memory) > 0 {
		piece, _ := pieces.Next(0)
		if err := l.stage(ctx, opcode, memory[:piece.Bytes], piece.Bytes < len(memory), remote, offset); err != nil {
			return err
		}
		memory, offset = memory[piece.Bytes:], offset+uint64(piece.Bytes)
	}
	return nil
}

// stage moves a piece through a slot, or several if it has no room in one. more tells that others
// follow, and that this one leaves at once.
func (l *Link) stage(ctx context.Context, opcode verbs.Opcode, piece []byte, more bool, remote verbs.RemoteRegion, offset uint64) error {
	for len(piece) > 0 {
		s, scarce, err := l.takeSlot(ctx, len(piece))
		if err != nil {
			return err
		}
		n := min(len(piece), len(s.memory), l.card.attributes.MaxMessage)
		memory := s.memory[:n:n]
		var into []byte
		if opcode == verbs.OpRDMAWrite {
			l.card.device.Copy(memory, piece)
		} else {
			into = piece[:n:n]
		}
		if err := l.enter(ctx, false); err != nil {
			s.put()
			return err
		}
		stays := l.staged.Load()
		if stays == nil {
			stays = new(staged)
			l.staged.Store(stays)
		}
		l.request(opcode, memory, s.lkey(l.card.kind), remote, offset)
		stays[l.sequence%mostSends] = stagedPiece{s, into}
		piece, offset = piece[n:], offset+uint64(n)
		if more = more || len(piece) > 0; scarce || more {
			l.signal()
			l.post(false)
		}
		l.leave(n)
	}
	return nil
}

// takeSlot gives a slot for so many bytes, or a shorter one. It waits for one no longer than ctx
// lasts.
func (l *Link) takeSlot(ctx context.Context, bytes int) (s slot, scarce bool, err error) {
	w, o := l.world, l.origins()
	if bytes <= w.letters.length && !o.refused.Load() {
		if s, scarce, err = w.letters.take(); err == nil {
			return s, scarce, nil
		}
		o.refuse(err)
	}
	wait := w.NewWaiter()
	defer wait.Finish()
	wait.For(l.rank)
	for {
		long := bytes > w.letters.length && !o.stageless.Load()
		if !long {
			s, scarce, err = w.letters.takeSpare()
		} else if s, scarce, err = o.stages.take(); err != nil {
			o.noStages(err)
			continue
		}
		if err != nil || s.memory != nil {
			return s, scarce, err
		}
		if err = l.fault(); err != nil {
			return s, scarce, err
		}
		if long {
			l.Post()
		} else {
			w.pushAll()
		}
		if err = wait.Pause(ctx); err != nil {
			return s, scarce, err
		}
	}
}

// pushAll has all that is collected on its way, on all links, and its completion heard of. Letters of
// what has completed are given back then. A link that has no letter to ask for that has others to.
func (w *World) pushAll() {
	for _, w := range *w.worlds.Load() {
		for rank := range w.links {
			for _, l := range [...]*Link{w.links[rank].Load(), w.cardLinks[rank].Load()} {
				if l != nil && l.broken.Load() == nil {
					l.mu.Lock()
					_ = l.push()
					l.mu.Unlock()
				}
			}
		}
	}
}

// unstage ends the stay of what a request has in a slot. It is called with the mutex.
func (s *staged) unstage(l *Link, place uint64) {
	piece := &s[place]
	if piece.slot.memory == nil {
		return
	}
	if piece.into != nil {
		l.card.device.Copy(piece.into, piece.slot.memory)
	}
	piece.slot.put()
	*piece = stagedPiece{}
}

// abandon gives the slots back of requests that have not completed, and never will.
func (s *staged) abandon() {
	for i := range s {
		if piece := &s[i]; piece.slot.memory != nil {
			piece.slot.put()
			*piece = stagedPiece{}
		}
	}
}

// registered moves memory that is registered for this once: as one, or in pieces each of which is on
// the wire while the next is registered.
func (l *Link) registered(ctx context.Context, opcode verbs.Opcode, memory []byte, protocol transfer.Protocol, remote verbs.RemoteRegion, offset uint64) error {
	// What is written from may be memory that is only read.
	var access verbs.Access
	if opcode == verbs.OpRDMARead {
		access = verbs.LocalWrite
	}
	o := l.origins()
	pieces := l.card.model.Cut(protocol, opcode == verbs.OpRDMAWrite, len(memory))
	depth := l.card.model.Depth()
	var sent [mostDepth]uint64
	for i := 0; len(memory) > 0; {
		next, _ := pieces.Next(o.cut(memory))
		piece, rest := memory[:next.Bytes], memory
		memory = memory[next.Bytes:]
		if next.Copied {
			if err := l.stage(ctx, opcode, piece, len(memory) > 0, remote, offset); err != nil {
				return err
			}
			offset += uint64(len(piece))
			continue
		}
		if i >= depth {
			// What was registered first ends, when it is on the wire no more.
			if err := l.reap(ctx, sent[i%depth]); err != nil {
				return err
			}
		}
		region, err := l.card.device.RegisterMemory(piece, access)
		if err != nil {
			o.refuse(err)
			return l.through(ctx, opcode, rest, transfer.Copy, remote, offset)
		}
		if err := l.moveAs(ctx, opcode, piece, region.LKey(), holding{region: region}, remote, offset); err != nil {
			return err
		}
		if offset += uint64(len(piece)); len(memory) > 0 {
			if sent[i%depth], err = l.leaves(); err != nil {
				return err
			}
		}
		i++
	}
	return nil
}

// leaves has what was sent last leave, and its completion heard of: its number.
func (l *Link) leaves() (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.push()
	return l.sequence, err
}

// reap returns when a request has completed, and what it needed was given back.
func (l *Link) reap(ctx context.Context, sequence uint64) error {
	if ok, err := l.await(ctx, sequence, 0); !ok {
		return err
	}
	l.mu.Lock()
	l.giveBack(l.done.Load())
	l.mu.Unlock()
	return nil
}
