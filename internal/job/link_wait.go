package job

import (
	"context"
	"fmt"
)

// Post has what is collected on its way.
func (l *Link) Post() {
	l.mu.Lock()
	l.post(false)
	l.mu.Unlock()
}

// Settle returns when the buffers of all operations so far are the caller's again
// and their results are valid. As to services it is as Flush.
func (l *Link) Settle(ctx context.Context, services ...uint32) error {
	return l.Reach(ctx, l.Mark(), services...)
}

// A Mark is a point in what has been sent over a link.
type Mark struct {
	sequence, asked uint64
	// strict: what is refused behind the last answer was told later, and is for another Mark.
	strict bool
	// ticket: what is refused behind the grant with this ticket is for another Mark, if it is not 0.
	ticket uint32
}

// And is the point after both.
func (m Mark) And(n Mark) Mark {
	return Mark{sequence: max(m.sequence, n.sequence), asked: max(m.asked, n.asked)}
}

// Sent is a Mark of what has been sent so far, whatever was asked.
func (l *Link) Sent() Mark {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Mark{sequence: l.sequence}
}

// Mark is the point after everything so far.
func (l *Link) Mark() Mark {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Mark{sequence: l.sequence, asked: l.asked}
}

// Questions is a Mark of what has been asked so far, and of nothing else: to reach it
// takes no message where nothing was asked.
func (l *Link) Questions() Mark {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Mark{asked: l.asked}
}

// Reach is Settle for what came before a mark.
func (l *Link) Reach(ctx context.Context, m Mark, services ...uint32) error {
	if err := l.settle(m); err != nil {
		return err
	}
	return l.complete(ctx, m, services)
}

// complete waits for what came before a mark. It takes what the rank has refused.
func (l *Link) complete(ctx context.Context, m Mark, services []uint32) error {
	ok, err := l.await(ctx, m.sequence, m.asked)
	if !ok {
		return err
	}
	l.mu.Lock()
	l.giveBack(l.done.Load())
	err = l.refusals.take(services, m)
	l.mu.Unlock()
	return err
}

// settle has everything so far on its way, and the completion of what came before a mark
// heard of.
func (l *Link) settle(m Mark) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done.Load() >= m.sequence || l.signalled >= m.sequence {
		l.post(false)
		return nil
	}
	return l.push()
}

// push is settle with the mutex.
func (l *Link) push() error {
	err := l.cover()
	l.post(false)
	return err
}

// Reached tells whether Reach would return at once, perhaps with an error.
func (l *Link) Reached(m Mark, services ...uint32) (bool, error) {
	if err := l.settle(m); err != nil {
		return false, err
	}
	l.world.engine.Poll()
	if l.done.Load() >= m.sequence && l.answered.Load() >= m.asked {
		return true, l.complete(context.Background(), m, services)
	}
	return false, l.fault()
}

// Flush returns when everything so far is complete at the rank: written, read, and
// served. What the rank has refused of the messages to services, or of any if none is
// named, is its error: of each the first since that was last told.
func (l *Link) Flush(ctx context.Context, services ...uint32) error {
	m, err := l.PushWithin(ctx)
	if err != nil {
		return err
	}
	return l.complete(ctx, m, services)
}

// PushWithin is Push that waits for room.
func (l *Link) PushWithin(ctx context.Context) (Mark, error) {
	if err := l.enter(ctx, true); err != nil {
		return Mark{}, err
	}
	defer l.mu.Unlock()
	if err := l.askFlush(); err != nil {
		return Mark{}, err
	}
	if err := l.push(); err != nil {
		return Mark{}, err
	}
	return l.asking(), nil
}

// asking is the strict Mark of everything so far, which was asked.
func (l *Link) asking() Mark { return Mark{sequence: l.sequence, asked: l.asked, strict: true} }

// GrantMark is the point at which a Service of the rank has told by itself that what came before is done, by a ticket:
// see Granted. Who reaches it has heard of that already.
func GrantMark(ticket uint32) Mark { return Mark{ticket: ticket} }

// Granted notes that a Service of the rank has told by itself that what came before is done. Its tickets, which are not
// 0, grow from one to the next, and may wrap.
func (l *Link) Granted(service, ticket uint32) {
	l.mu.Lock()
	l.refusals.granted(service, ticket)
	l.mu.Unlock()
}

// Push has everything that a Flush will wait for on its way, so that several links can be
// flushed side by side. It does not wait. ok tells that nothing but the mark that it gives
// has to be reached then: there was room to ask.
func (l *Link) Push() (m Mark, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ok = l.room(l.told)
	if ok {
		ok = l.askFlush() == nil
	}
	if l.push() != nil {
		ok = false
	}
	return l.asking(), ok
}

// await waits for a request and an answer, and tells whether they have come.
func (l *Link) await(ctx context.Context, sequence, asked uint64) (bool, error) {
	wait := l.world.NewWaiter()
	defer wait.Finish()
	wait.For(l.rank)
	for l.done.Load() < sequence || l.answered.Load() < asked {
		err := l.fault()
		if err == nil && wait.AboutToSleep() {
			err = l.world.endedBy("", l.rank)
		}
		if err != nil {
			return false, err
		}
		if l.stuck.Load() {
			l.Post()
		}
		if err := wait.Pause(ctx); err != nil {
			return false, fmt.Errorf("waiting for rank %d: %w", l.rank, err)
		}
	}
	return true, nil
}

// delivered returns when everything has been received, or never will be.
func (l *Link) delivered(ctx context.Context) error {
	// What is said after the mark nobody waits for.
	m := l.Mark()
	if err := l.settle(m); err != nil {
		return err
	}
	_, err := l.await(ctx, m.sequence, 0)
	return err
}
