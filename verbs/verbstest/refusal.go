package verbstest

import (
	"slices"

	"github.com/onesided/rma/verbs"
)

// refuses posts a work and reports whether the device refuses it. The queue pair is then unchanged.
func (p *pair) refuses(w work) bool {
	p.Helper()
	if _, err := p.try(w); err == nil {
		return false
	}
	p.quiet()
	p.expectReady()
	return true
}

// expectRefusal posts a work that is malformed on this side. The device may refuse it when it is posted, or complete it
// with an error other than StatusFlushed.
func (p *pair) expectRefusal(w work) {
	p.Helper()
	if !p.refuses(w) {
		p.expectFailure(p.sent(1)[0], w.ID)
		p.expectError()
	}
}

// expectProtection posts a work with a bad segment. The device may refuse it at once.
func (p *pair) expectProtection(w work) {
	p.Helper()
	if p.refuses(w) {
		return
	}
	p.expectStatus(w.ID, verbs.StatusLocalProtection)
	p.post(w)
	p.expectSent(failed(w.ID, verbs.StatusFlushed))
}

// expectReceiveRefusal posts a receive that must be refused at once.
func (p *pair) expectReceiveRefusal(r slot) {
	p.Helper()
	if _, err := p.tryReceive(r); err == nil {
		p.Fatal("PostReceive took a malformed request")
	}
}

// expectFailure fails the case unless a completion has the cause of an error.
func (p *pair) expectFailure(c verbs.Completion, id uint64) {
	p.Helper()
	if c.ID != id || c.QueuePair != p.number || c.Status == verbs.StatusSuccess || c.Status == verbs.StatusFlushed {
		p.Fatalf("completion %+v of queue pair %d, want the failure of request %d", c, p.number, id)
	}
}

// expectStatus waits for the completion of a work with one of several statuses, and until the queue pair has failed
// with it.
func (p *pair) expectStatus(id uint64, statuses ...verbs.Status) {
	p.Helper()
	c := p.sent(1)[0]
	if c.ID != id || c.QueuePair != p.number || !slices.Contains(statuses, c.Status) {
		p.Fatalf("completion %+v of queue pair %d, want request %d with a status of %v", c, p.number, id, statuses)
	}
	p.expectError()
}
