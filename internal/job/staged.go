package job

import (
	"context"

	"github.com/onesided/rma/internal/registration"
	"github.com/onesided/rma/verbs"
)

// What a card does not know goes through memory that it does: a piece is copied into a buffer before
// it is written, or out of one when it has been read. While one is on the wire the next is copied.
//
// Invariants:
//
//   - A buffer is given back by progress when its request has completed, on whichever link: who waits
//     for one and polls gets it.
//   - Of stages, of which there are few, more than half have been posted, and their completion is
//     heard of, when there are none left.
//   - What was read is where the program wants it before done says that its request has completed.

// staged are the buffers of a link's requests that are outstanding: that of a request is at its number
// modulo theirs. The mutex of the link guards them.
type staged [mostSends]stagedPiece

type stagedPiece struct {
	buffer registration.Buffer
	// into is where what is read goes, nil of a write.
	into []byte
}

// stage moves a piece through a buffer, or several if it has no room in one. more tells that others
// follow, and that this one leaves at once.
func (l *Link) stage(ctx context.Context, opcode verbs.Opcode, piece []byte, more bool, remote verbs.RemoteRegion, offset uint64) error {
	for len(piece) > 0 {
		b, scarce, err := l.takeBuffer(ctx, len(piece))
		if err != nil {
			return err
		}
		n := min(len(piece), len(b.Memory), l.card.attributes.MaxMessage)
		memory := b.Memory[:n:n]
		var into []byte
		if opcode == verbs.OpRDMAWrite {
			l.card.device.Copy(memory, piece)
		} else {
			into = piece[:n:n]
		}
		if err := l.enter(ctx, false); err != nil {
			b.Release()
			return err
		}
		stays := l.staged.Load()
		if stays == nil {
			stays = new(staged)
			l.staged.Store(stays)
		}
		l.request(opcode, memory, b.Key(l.card.kind), remote, offset)
		stays[l.sequence%mostSends] = stagedPiece{b, into}
		piece, offset = piece[n:], offset+uint64(n)
		if more = more || len(piece) > 0; scarce || more {
			l.signal()
			l.post(false)
		}
		l.leave(n)
	}
	return nil
}

// takeBuffer gives a buffer for so many bytes, or a shorter one. It waits for one no longer than ctx
// lasts.
func (l *Link) takeBuffer(ctx context.Context, bytes int) (b registration.Buffer, scarce bool, err error) {
	w, c := l.world, l.card.memory
	if b, scarce, err = c.CopyBuffer(bytes, false); err != nil || b.Memory != nil {
		return b, scarce, err
	}
	wait := w.NewWaiter()
	defer wait.Finish()
	wait.For(l.rank)
	for {
		if err = l.fault(); err != nil {
			return b, scarce, err
		}
		if c.UsesStage(bytes) {
			l.Post()
		} else {
			w.pushAll()
		}
		if err = wait.Pause(ctx); err != nil {
			return b, scarce, err
		}
		if b, scarce, err = c.CopyBuffer(bytes, true); err != nil || b.Memory != nil {
			return b, scarce, err
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

// unstage ends the stay of what a request has in a buffer. It is called with the mutex.
func (s *staged) unstage(l *Link, place uint64) {
	piece := &s[place]
	if piece.buffer.Memory == nil {
		return
	}
	if piece.into != nil {
		l.card.device.Copy(piece.into, piece.buffer.Memory)
	}
	piece.buffer.Release()
	*piece = stagedPiece{}
}

// abandon gives the buffers back of requests that have not completed, and never will.
func (s *staged) abandon() {
	for i := range s {
		if piece := &s[i]; piece.buffer.Memory != nil {
			piece.buffer.Release()
			*piece = stagedPiece{}
		}
	}
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
