package sim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/simtest"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/sim"
)

// bare is a card where only what a test sets takes time.
func bare(set func(p *sim.Profile)) sim.Profile {
	p := sim.Ideal()
	p.Name = "bare"
	set(&p)
	return p
}

const us = time.Microsecond

// took runs body as a task of a's and tells how long it took.
func took(t *testing.T, s *sim.Simulator, a *node, body func()) (time time.Duration) {
	t.Helper()
	run(t, s, func() {
		begun := a.Now()
		body()
		time = a.Now() - begun
	})
	return time
}

// Each constant of a profile costs what the equations say.
func TestEquations(t *testing.T) {
	const flags = verbs.Signalled
	for _, c := range []struct {
		name string
		set  func(p *sim.Profile)
		body func(a, b *node)
		want time.Duration
	}{
		{"a write waits for the news of it", func(p *sim.Profile) {
			p.Post, p.Fetch, p.Wire, p.Place, p.Acknowledge = 1*us, 2*us, 4*us, 8*us, 16*us
		}, func(a, b *node) {
			a.post(b, verbs.OpRDMAWrite, flags, 8)
			a.completions(1)
		}, (1 + 2 + 4 + 8 + 4 + 16) * us},
		{"a read waits for its data", func(p *sim.Profile) {
			p.Post, p.Fetch, p.Wire, p.Place, p.TurnRead, p.Return = 1*us, 2*us, 4*us, 8*us, 16*us, 32*us
		}, func(a, b *node) {
			a.post(b, verbs.OpRDMARead, flags, 8)
			a.completions(1)
		}, (1 + 2 + 4 + 8 + 16 + 4 + 32) * us},
		{"an atomic has a turnaround of its own", func(p *sim.Profile) { p.TurnRead, p.TurnAtomic = us, 2*us }, func(a, b *node) {
			a.post(b, verbs.OpFetchAdd, flags, 8)
			a.completions(1)
		}, 2 * us},
		{"bytes cross bus and links at once", func(p *sim.Profile) { p.Link, p.Bus = 1e9, 2e9 }, func(a, b *node) {
			a.post(b, verbs.OpRDMAWrite, flags, 1<<20)
			a.completions(1)
		}, 1048576},
		{"the slower of bus and link decides", func(p *sim.Profile) { p.Link, p.Bus = 2e9, 1e9 }, func(a, b *node) {
			a.post(b, verbs.OpRDMARead, flags, 1<<20)
			a.completions(1)
		}, 1048576},
		{"messages leave a gap apart", func(p *sim.Profile) { p.Gap = us }, func(a, b *node) {
			for range 10 {
				a.post(b, verbs.OpRDMAWrite, flags, 8)
			}
			a.completions(10)
		}, 9 * us},
		{"posting overlaps the card's work", func(p *sim.Profile) { p.Post, p.Fetch, p.Gap = 2*us, 5*us, us }, func(a, b *node) {
			for range 10 {
				a.post(b, verbs.OpRDMAWrite, flags, 8)
			}
			a.completions(10)
		}, (10*2 + 5) * us},
		{"a processor copies inline data, and the card does not fetch it", func(p *sim.Profile) {
			p.Fetch, p.FetchInline, p.InlineRate = 5*us, us, 1e7
		}, func(a, b *node) {
			a.post(b, verbs.OpRDMAWrite, flags|verbs.Inline, 100)
			a.completions(1)
		}, 11 * us},
		{"reads beyond the limit wait", func(p *sim.Profile) { p.TurnRead, p.MaxReads = 10*us, 2 }, func(a, b *node) {
			for range 6 {
				a.post(b, verbs.OpRDMARead, flags, 8)
			}
			a.completions(6)
		}, 30 * us},
		{"a fenced write waits for reads", func(p *sim.Profile) { p.TurnRead, p.Place = 10*us, us }, func(a, b *node) {
			a.post(b, verbs.OpRDMARead, 0, 8)
			a.post(b, verbs.OpRDMAWrite, flags|verbs.Fence, 8)
			a.completions(1)
		}, 12 * us},
		{"a write behind a read does not wait, but its completion does", func(p *sim.Profile) { p.TurnRead, p.Place = 10*us, us }, func(a, b *node) {
			a.post(b, verbs.OpRDMARead, 0, 8)
			a.post(b, verbs.OpRDMAWrite, flags, 8)
			a.completions(1)
		}, 11 * us},
		{"polls and completions cost", func(p *sim.Profile) { p.Poll, p.Complete = 3*us, us }, func(a, b *node) {
			a.post(b, verbs.OpRDMAWrite, flags, 8)
			a.queue.Poll(a.into[:])
		}, 4 * us},
		{"rings cost", func(p *sim.Profile) { p.PollRing = us }, func(a, b *node) { a.PollRings(7) }, 7 * us},
		{"deregistering costs by page", func(p *sim.Profile) { p.Deregister, p.DeregisterPage = us, 2 }, func(a, b *node) {
			region, _ := a.RegisterMemory(a.memory[:5*4096], all)
			_ = region.Deregister()
		}, us + 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := simtest.With(t, bare(c.set), 1)
			a, b := two(t, s, 1<<20)
			if got := took(t, s, a, func() { c.body(a, b) }); got != c.want {
				t.Errorf("took %v, want %v", got, c.want)
			}
		})
	}
}

// A list of segments costs the processor and the card.
func TestGatheringCosts(t *testing.T) {
	s := simtest.With(t, bare(func(p *sim.Profile) { p.Post, p.PostSegment, p.GapSegment = 4*us, us, 10*us }), 1)
	a, b := two(t, s, 64)
	one := verbs.Segment{Memory: a.memory[:1], LKey: a.region.LKey()}
	remote := b.region.Remote()
	request := verbs.SendRequest{Opcode: verbs.OpRDMAWrite, Flags: verbs.Signalled, Segments: []verbs.Segment{one, one, one}, RemoteAddress: remote.Address, RKey: remote.RKey}
	require.Equal(t, (4+2+10*2)*us, took(t, s, a, func() {
		request := []verbs.SendRequest{request}
		_, err := a.pairs[1].PostSend(request)
		require.NoError(t, err)
		a.post(b, verbs.OpRDMAWrite, verbs.Signalled, 1)
		a.completions(2)
	}))
}

// A sender that finds no receive tries again every StarvedWait beside the way there and
// back, until there is one.
func TestStarvedSendersTryAgain(t *testing.T) {
	for _, c := range []struct{ posted, arrives time.Duration }{
		{0, 1 * us}, {1 * us, 1 * us}, {2 * us, 1*us + 12*us + 1*us}, {13 * us, 14 * us}, {14 * us, 1*us + 24*us + 1*us}, {100 * us, 1*us + 108*us + 1*us},
	} {
		s := simtest.With(t, bare(func(p *sim.Profile) { p.Wire, p.StarvedWait = us, 10*us }), 1)
		a, b := two(t, s, 64)
		begun := b.Now()
		var arrived time.Duration
		run(t, s, func() {
			a.post(b, verbs.OpSend, verbs.Signalled, 8)
			a.post(b, verbs.OpRDMAWrite, verbs.Signalled, 8)
			a.completions(2)
		}, func() {
			b.Compute(c.posted)
			_, err := b.pairs[0].PostReceive([]verbs.ReceiveRequest{{Segments: []verbs.Segment{{Memory: b.memory[8:16], LKey: b.region.LKey()}}}})
			require.NoError(t, err)
			b.completions(1)
			arrived = b.Now() - begun
		})
		if arrived != c.arrives {
			t.Errorf("with a receive at %v the message arrives at %v, want %v", c.posted, arrived, c.arrives)
		}
	}
}

// A read takes the bytes when the responder carries it out, a write's appear when they
// are placed: a processor that looks before sees what was there.
func TestBytesMoveWhenTheModelSays(t *testing.T) {
	for _, c := range []struct {
		changed time.Duration
		sees    uint64
	}{{14*us - 1, 2}, {14*us + 1, 1}} {
		s := simtest.With(t, bare(func(p *sim.Profile) { p.Wire, p.TurnRead = 4*us, 10*us }), 1)
		a, b := two(t, s, 64)
		b.set(1)
		run(t, s, func() {
			a.post(b, verbs.OpRDMARead, verbs.Signalled, 8)
			a.completions(1)
			require.Equal(t, c.sees, a.word(), "changed at %v", c.changed)
			a.set(3)
			a.post(b, verbs.OpRDMAWrite, 0, 8)
		}, func() {
			b.wait(c.changed)
			b.set(2)
			b.wait(18*us + 4*us - c.changed - 1)
			require.Equal(t, uint64(2), b.word())
			b.wait(2)
			require.Equal(t, uint64(3), b.word())
		})
	}
}

// wait lets time pass.
func (n *node) wait(d time.Duration) {
	for end := n.Now() + d; n.Now() < end; {
		n.Channel().Sleep(n.Channel().Prepare(), end-n.Now())
	}
}

// Senders to one rank share its link, and none starves.
func TestIncastSharesTheLink(t *testing.T) {
	s := simtest.With(t, bare(func(p *sim.Profile) { p.Link = 1e9 }), 1)
	const senders, size = 4, 1 << 20
	made := nodes(t, s, senders+1, size)
	var ends [senders]time.Duration
	var bodies []func()
	for i, n := range made[1:] {
		bodies = append(bodies, func() {
			n.connect(made[0])
			n.post(made[0], verbs.OpRDMAWrite, verbs.Signalled, size)
			n.completions(1)
			ends[i] = n.Now()
		})
	}
	run(t, s, append(bodies, func() { made[0].accept(senders) })...)
	for i, end := range ends {
		if end < senders*size*9/10 || end > senders*size {
			t.Errorf("sender %d is done at %v, want just before %v", i, end, time.Duration(senders*size))
		}
	}
}

// A small message of another queue pair waits for the bursts of a large one that are on the
// wire, fetched and next in turn, not for all.
func TestQueuePairsTakeTurns(t *testing.T) {
	s := simtest.With(t, bare(func(p *sim.Profile) { p.Link = 1e9; p.Burst = 4096 }), 1)
	made := nodes(t, s, 3, 1<<20)
	a := made[0]
	run(t, s, func() {
		a.connect(made[1])
		a.connect(made[2])
		begun := a.Now()
		a.post(made[1], verbs.OpRDMAWrite, verbs.Signalled, 1<<20)
		a.post(made[2], verbs.OpRDMAWrite, verbs.Signalled, 8)
		a.completions(1)
		require.Equal(t, time.Duration(3*4096+8), a.Now()-begun)
		a.completions(1)
		require.Equal(t, time.Duration(1<<20+8), a.Now()-begun)
	}, func() { made[1].accept(1) }, func() { made[2].accept(1) })
}

// Severing is noticed by both sides.
func TestSever(t *testing.T) {
	s := simtest.With(t, bare(func(p *sim.Profile) { p.Wire = us }), 1)
	a, b := two(t, s, 64)
	run(t, s, func() {
		a.pairs[1].(verbs.Severer).Sever()
		require.ErrorIs(t, a.pairs[1].Err(), verbs.ErrDisconnected)
	}, func() {
		b.until(func() bool { b.queue.Poll(nil); return b.pairs[0].State() == verbs.StateError })
		require.ErrorIs(t, b.pairs[0].Err(), verbs.ErrDisconnected)
	})
}
