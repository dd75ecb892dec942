package window

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/onesided/rma/internal/job"
)

// A direct operation has to wait until its target has ended a Fence that this rank has ended: see tallies. The target
// is asked, and queued operations remain until it has responded. That may take long. So no goroutine waits for it with
// the mutex of the queue, which others need before they look at their contexts.

// A gate records the Fences that a rank is known to have ended.
type gate struct {
	// asked is the last Fence that the rank was asked about, answer the point after its response.
	asked  uint32
	answer job.Mark
	// passed is the last Fence that it is known to have ended. It is asked, or the response has not arrived.
	passed atomic.Uint32
}

// errBehindGate means that direct operations cannot leave yet.
var errBehindGate = errors.New("the target may not have ended the last Fence")

// pass returns errBehindGate unless the rank is known to have ended the last Fence after which direct operations have
// to wait. The caller holds the mutex.
func (d *deferred) pass(ctx context.Context) error {
	if d.link.Mute() {
		// The rank is on this host. Its ranks end a Fence when all have what they wait for.
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

// Answered handles the response. Progress calls it. There is one request at a time.
func (g *gate) Answered(answer []byte) bool {
	g.passed.Store(g.asked)
	return len(answer) == 0
}

// Refused is called in place of Answered for a rank that is about to leave. Messages to it are lost, as they would have
// been earlier.
func (g *gate) Refused() { g.passed.Store(g.asked) }

// awaitGate returns when the rank has responded.
func (d *deferred) awaitGate(ctx context.Context) error {
	d.mu.Lock()
	answer, answered := d.gate.answer, d.gate.passed.Load() == d.gate.asked
	d.mu.Unlock()
	if answered {
		return nil
	}
	return d.link.Reach(ctx, answer, d.core.number)
}
