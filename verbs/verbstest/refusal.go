package verbstest

import (
	"encoding/binary"
	"slices"

	"github.com/onesided/rma/verbs"
)

// expectRefusal posts a work that is malformed on this side. The device may
// say so when it is posted, and then the queue pair is as good as before. Or
// the work completes with an error that is not StatusFlushed.
func (p *pair) expectRefusal(w work) {
	p.Helper()
	if n, err := p.try(w); n == 0 {
		if err == nil {
			p.Fatal("PostSend took nothing and gave no reason")
		}
		p.quiet()
		p.expectReady()
		return
	}
	p.expectFailure(p.sent(1)[0], w.ID)
	p.expectError()
}

// expectReceiveRefusal posts a receive that has to be refused at once.
func (p *pair) expectReceiveRefusal(r slot) {
	p.Helper()
	if n, err := p.tryReceive(r); n != 0 || err == nil {
		p.Fatalf("PostReceive took %d of a malformed request, error %v", n, err)
	}
}

// expectFailure fails the case unless a completion names the cause of an error.
func (p *pair) expectFailure(c verbs.Completion, id uint64) {
	p.Helper()
	if c.ID != id || c.QueuePair != p.number || c.Status == verbs.StatusSuccess || c.Status == verbs.StatusFlushed {
		p.Fatalf("completion %+v of queue pair %d, want the failure of request %d", c, p.number, id)
	}
}

// expectStatus waits for the completion of a work with one of some statuses,
// and until the queue pair has failed with it.
func (p *pair) expectStatus(id uint64, statuses ...verbs.Status) {
	p.Helper()
	c := p.sent(1)[0]
	if c.ID != id || c.QueuePair != p.number || !slices.Contains(statuses, c.Status) {
		p.Fatalf("completion %+v of queue pair %d, want request %d with a status of %v", c, p.number, id, statuses)
	}
	p.expectError()
}

func get64(b []byte) uint64 { return binary.NativeEndian.Uint64(b) }

func put64(b []byte, v uint64) { binary.NativeEndian.PutUint64(b, v) }
