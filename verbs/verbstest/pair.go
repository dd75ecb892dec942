package verbstest

import (
	"errors"
	"fmt"

	"github.com/onesided/rma/verbs"
)

// A pair is a rank's end of a connection.
type pair struct {
	*rank
	handle int
	number uint32
}

// connect starts to connect a queue pair to another rank.
func (r *rank) connect(to *rank, hello string, z sizes) *pair {
	r.Helper()
	a := r.must(connectStep{Address: to.address, Hello: []byte(hello), Sizes: z})
	return &pair{r, a.Handle, a.Number}
}

// accept waits for the request with a hello and accepts it.
func (r *rank) accept(hello string, z sizes) *pair {
	r.Helper()
	a := r.must(acceptStep{Hello: []byte(hello), Sizes: z})
	return &pair{r, a.Handle, a.Number}
}

// connected connects two ranks. from is the connecting one.
func connected(from, to *rank, z sizes) (*pair, *pair) {
	from.Helper()
	hello := fmt.Sprintf("connection %d", from.nextHello())
	p := from.connect(to, hello, z)
	q := to.accept(hello, z)
	p.await(verbs.StateReady)
	return p, q
}

func (b *bench) nextHello() int {
	b.hellos++
	return b.hellos
}

// pair opens two devices and connects them.
func (b *bench) pair(z sizes) (near, far *pair) {
	b.Helper()
	n, f := b.two()
	return connected(n, f, z)
}

// queuePair returns the device's own queue pair, of a near rank only.
func (p *pair) queuePair() verbs.QueuePair { return p.station.pair(p.handle).queuePair }

// try posts works. The caller judges the device's error.
func (p *pair) try(works ...work) (int, error) {
	p.Helper()
	a := p.may(postStep{p.handle, works})
	if (a.Err == nil) != (a.Count == len(works)) || a.Count > len(works) || a.Count < 0 {
		p.Fatalf("PostSend of %d requests took %d and said %v", len(works), a.Count, a.Err.error())
	}
	return a.Count, a.Err.error()
}

// post posts works, all of which the device has to take.
func (p *pair) post(works ...work) {
	p.Helper()
	if n, err := p.try(works...); err != nil {
		p.Fatalf("PostSend took %d of %d requests: %v", n, len(works), err)
	}
}

// tryReceive posts receives. The caller judges the device's error.
func (p *pair) tryReceive(slots ...slot) (int, error) {
	p.Helper()
	a := p.may(receiveStep{p.handle, slots})
	if (a.Err == nil) != (a.Count == len(slots)) || a.Count > len(slots) || a.Count < 0 {
		p.Fatalf("PostReceive of %d requests took %d and said %v", len(slots), a.Count, a.Err.error())
	}
	return a.Count, a.Err.error()
}

// receive posts one receive.
func (p *pair) receive(id uint64, into ...segment) {
	p.Helper()
	p.receiveAll(slot{id, into})
}

func (p *pair) receiveAll(slots ...slot) {
	p.Helper()
	if n, err := p.tryReceive(slots...); err != nil {
		p.Fatalf("PostReceive took %d of %d requests: %v", n, len(slots), err)
	}
}

// sent waits for n completions of the send queue.
func (p *pair) sent(n int) []verbs.Completion {
	p.Helper()
	return p.must(collectStep{Pair: p.handle, Count: n}).Completions
}

// received waits for n completions of the receive queue.
func (p *pair) received(n int) []verbs.Completion {
	p.Helper()
	return p.must(collectStep{Pair: p.handle, Receives: true, Count: n}).Completions
}

// expectSent waits for completions of the send queue and fails the case unless they are these, in this order.
func (p *pair) expectSent(want ...verbs.Completion) {
	p.Helper()
	p.compare("send queue", p.sent(len(want)), want)
}

// expectReceived is expectSent for the receive queue.
func (p *pair) expectReceived(want ...verbs.Completion) {
	p.Helper()
	p.compare("receive queue", p.received(len(want)), want)
}

// compare compares completions. For errors it compares only the ID, queue pair and status.
func (p *pair) compare(queue string, got, want []verbs.Completion) {
	p.Helper()
	for i := range want {
		w, g := want[i], got[i]
		w.QueuePair = p.number
		if w.Status != verbs.StatusSuccess {
			g.Opcode, g.Bytes, g.Immediate = w.Opcode, w.Bytes, w.Immediate
		}
		if w.Opcode != verbs.OpReceive && w.Opcode != verbs.OpReceiveImmediate {
			g.Bytes = w.Bytes
		}
		if w.Opcode != verbs.OpReceiveImmediate {
			g.Immediate = w.Immediate
		}
		if g != w {
			p.Fatalf("%s: completion %d is %+v, want %+v; all: %+v", queue, i+1, got[i], w, got)
		}
	}
}

// quiet fails the case if there are further completions.
func (p *pair) quiet() {
	p.Helper()
	for _, receives := range []bool{false, true} {
		if got := p.must(pollStep{p.handle, receives}).Completions; len(got) > 0 {
			p.Fatalf("completions of nothing that was asked for (of receives: %v): %+v", receives, got)
		}
	}
}

// await waits for a state.
func (p *pair) await(state verbs.State) {
	p.Helper()
	p.may(stateStep{Pair: p.handle, Wait: true, Await: state})
}

// state returns the current state and its error.
func (p *pair) state() (verbs.State, error) {
	p.Helper()
	a := p.may(stateStep{Pair: p.handle})
	return a.State, a.Err.error()
}

// expectReady fails the case unless the queue pair is ready.
func (p *pair) expectReady() {
	p.Helper()
	if state, err := p.state(); state != verbs.StateReady || err != nil {
		p.Fatalf("the queue pair is in state %d, error %v; want StateReady and none", state, err)
	}
}

// expectError waits until the queue pair has failed and returns its error.
func (p *pair) expectError() error {
	p.Helper()
	p.await(verbs.StateError)
	state, err := p.state()
	if state != verbs.StateError || err == nil {
		p.Fatalf("the queue pair is in state %d, error %v; want StateError and the reason", state, err)
	}
	return err
}

// expectDisconnected waits until the queue pair has failed. It fails the case unless a side has ended the connection in
// order.
func (p *pair) expectDisconnected() {
	p.Helper()
	if err := p.expectError(); !errors.Is(err, verbs.ErrDisconnected) || !errors.Is(err, verbs.ErrPeerGone) {
		p.Fatalf("the error after an orderly end is %q; want ErrDisconnected, which is an ErrPeerGone", err)
	}
}

// expectGone waits until the queue pair has failed. It fails the case unless the peer is gone and, if it has crashed,
// did not end the connection in order.
func (p *pair) expectGone(crashed bool) {
	p.Helper()
	err := p.expectError()
	if !errors.Is(err, verbs.ErrPeerGone) || crashed && errors.Is(err, verbs.ErrDisconnected) {
		p.Fatalf("the error after the death of the peer is %q; want ErrPeerGone, and ErrDisconnected only if it closed its device", err)
	}
}

// expectEnded waits for the completions of works, all signalled, that were posted before the connection ended. Each has
// one completion, in order, and after the first error all are flushed.
func (p *pair) expectEnded(works ...work) {
	p.Helper()
	bad := 0
	for i, c := range p.sent(len(works)) {
		if c.Status != verbs.StatusSuccess {
			bad++
		}
		if c.ID != works[i].ID || c.QueuePair != p.number || bad > 0 && c.Status == verbs.StatusSuccess || bad > 1 && c.Status != verbs.StatusFlushed {
			p.Fatalf("completion %d of requests that the end of the connection met is %+v, after %d errors", i+1, c, bad)
		}
	}
}

func (p *pair) sever() {
	p.Helper()
	p.must(severStep{p.handle})
}

func (p *pair) close() {
	p.Helper()
	p.must(closePairStep{p.handle})
}

// done returns the completion of a signalled work that succeeded.
func done(w work) verbs.Completion {
	return verbs.Completion{ID: w.ID, Opcode: w.Opcode}
}

// failed returns the completion of a work or receive that failed.
func failed(id uint64, status verbs.Status) verbs.Completion {
	return verbs.Completion{ID: id, Status: status}
}

// got returns the completion of a receive.
func got(id uint64, bytes int) verbs.Completion {
	return verbs.Completion{ID: id, Opcode: verbs.OpReceive, Bytes: uint32(bytes)}
}

// gotImmediate returns the completion of a receive with immediate data.
func gotImmediate(id uint64, bytes int, immediate uint32) verbs.Completion {
	return verbs.Completion{ID: id, Opcode: verbs.OpReceiveImmediate, Bytes: uint32(bytes), Immediate: immediate}
}
