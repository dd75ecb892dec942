package window

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/onesided/rma/internal/job"
)

// What goes direct has to wait until its target has ended a Fence that this rank has ended: see
// tallies. The target is asked, and what is queued is left until it has answered. That may be
// long, so nobody waits for it with the mutex of the queue, which others need before they look at
// their contexts.

// A gate is which Fence a rank is known to have ended.
type gate struct {
	// asked is the last Fence that the rank was asked about, answer the point behind its answer.
	asked  uint32
	answer job.Mark
	// passed is the last that it is known to have ended: asked, or it has not answered yet.
	passed atomic.Uint32
}

// errBehindGate is why what is queued is left.
var errBehindGate = errors.New("the target may not have ended the last Fence")

// pass returns errBehindGate unless the rank is known to have ended the Fence after which its
// memory may be touched direct. It is called with the mutex.
func (d *deferred) pass(ctx context.Context) error {
	if d.link.Mute() {
		// It is of this host, whose ranks end a Fence when all have what they wait for.
		return nil
	}
	g, number := &d.gate, d.core.tallies.gate.Load()
	switch passed := g.passed.Load(); passed {
	case number:
		return nil
	case g.asked:
		g.asked = number
		d.counts.stalls++
		m := job.Message{Kind: messageGate, Service: d.core.number, X: uint64(number)}
		if err := d.link.AskFor(ctx, &m, nil, g); err != nil {
			g.asked = passed
			return err
		}
		g.answer = d.link.Questions()
		d.link.Post()
	}
	return errBehindGate
}

// Answered is called in progress, when there is one question.
func (g *gate) Answered(answer []byte) bool {
	g.passed.Store(g.asked)
	return len(answer) == 0
}

// Refused is called in place of Answered by a rank that is about to leave: what it is sent is lost,
// as it would have been before.
func (g *gate) Refused() { g.passed.Store(g.asked) }

// awaitGate returns when the rank has answered.
func (d *deferred) awaitGate(ctx context.Context) error {
	d.mu.Lock()
	answer, answered := d.gate.answer, d.gate.passed.Load() == d.gate.asked
	d.mu.Unlock()
	if answered {
		return nil
	}
	return d.link.Reach(ctx, answer, d.core.number)
}
