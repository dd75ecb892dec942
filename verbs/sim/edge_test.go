package sim_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/simtest"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/sim"
)

// ended waits for n completions, whatever they say.
func (n *node) ended(count int) (got []verbs.Completion) {
	n.until(func() bool {
		for more := 1; more > 0; {
			more = n.queue.Poll(n.into[:])
			got = append(got, n.into[:more]...)
		}
		return len(got) >= count
	})
	return got
}

// A region that is deregistered before the response to a read leaves is not read.
func TestRegionThatEndsBeforeItIsRead(t *testing.T) {
	s := simtest.With(t, bare(func(p *sim.Profile) { p.Wire, p.TurnRead = us, 10*us }), 1)
	a, b := two(t, s, 64)
	run(t, s, func() {
		a.set(5)
		a.post(b, verbs.OpRDMARead, 0, 8)
		require.Equal(t, verbs.StatusRemoteAccess, a.ended(1)[0].Status)
		require.Equal(t, uint64(5), a.word())
		require.ErrorIs(t, a.pairs[1].Err(), verbs.StatusRemoteAccess)
	}, func() {
		b.Compute(5 * us)
		require.NoError(t, b.region.Deregister())
	})
}

// Requests that a sender knows to have been carried out are not flushed, those under way
// are.
func TestFlushLeavesOutWhatIsKnown(t *testing.T) {
	s := simtest.With(t, bare(func(p *sim.Profile) { p.Wire = us }), 1)
	a, b := two(t, s, 64)
	run(t, s, func() {
		a.post(b, verbs.OpRDMAWrite, 0, 8)
		a.Compute(10 * us)
		a.post(b, verbs.OpRDMAWrite, 0, 8)
		a.post(b, verbs.OpRDMAWrite, verbs.Signalled, 8)
		got := a.ended(2)
		require.Len(t, got, 2)
		require.Equal(t, verbs.StatusFlushed, got[0].Status)
		require.Equal(t, verbs.StatusFlushed, got[1].Status)
	}, func() {
		b.Compute(10*us + 500)
		require.NoError(t, b.pairs[0].Close())
	})
}

// A device closes at the time of who closes it: what arrives before has been carried out.
func TestCloseHasItsTime(t *testing.T) {
	for _, c := range []struct {
		closes time.Duration
		status verbs.Status
	}{{us - 1, verbs.StatusFlushed}, {us + 1, verbs.StatusSuccess}} {
		s := simtest.With(t, bare(func(p *sim.Profile) { p.Wire = us }), 1)
		a, b := two(t, s, 64)
		run(t, s, func() {
			a.post(b, verbs.OpRDMAWrite, verbs.Signalled, 8)
			require.Equal(t, c.status, a.ended(1)[0].Status, "closed at %v", c.closes)
		}, func() {
			b.Compute(c.closes)
			require.NoError(t, b.Close())
		})
	}
}

func TestDevicesOfAnotherJobAreNotReached(t *testing.T) {
	a := nodes(t, simtest.With(t, sim.Ideal(), 1), 1, 64)[0]
	other := simtest.With(t, sim.Ideal(), 1).Open()
	q, err := a.Connect(other.Address(), nil, a.config())
	require.NoError(t, err)
	a.queue.Poll(nil)
	require.Equal(t, verbs.StateError, q.State())
	require.ErrorIs(t, q.Err(), verbs.ErrPeerGone)
}

func TestRefusals(t *testing.T) {
	s := simtest.With(t, sim.Ideal(), 1)
	d := s.Open()
	memory, err := d.AllocateMemory(64)
	require.NoError(t, err)
	_, err = d.RegisterMemory(memory, 1<<20)
	require.ErrorContains(t, err, "sim: RegisterMemory: access 0x100000 has unknown rights")
	_, err = d.AllocateMemory(64<<30 - 63)
	require.ErrorIs(t, err, verbs.ErrMemory, "beside 64 bytes")
	require.NoError(t, d.FreeMemory(memory))
	for range 1 << 14 {
		_, err = d.RegisterMemory(memory, 0)
		require.NoError(t, err)
	}
	_, err = d.RegisterMemory(memory, 0)
	require.True(t, errors.Is(err, errors.ErrUnsupported), err)
	require.ErrorContains(t, err, "it has 16384 already")

	queue, err := d.CreateCompletionQueue(1)
	require.NoError(t, err)
	_, err = d.Connect(d.Address(), nil, verbs.QueuePairConfig{SendQueue: queue, ReceiveQueue: queue, MaxSends: 1<<20 + 1})
	require.ErrorContains(t, err, "depth 1048577, allowed are 1 to 1048576")

	require.NoError(t, d.Close())
	require.ErrorIs(t, d.FreeMemory(memory), verbs.ErrClosed)
	_, err = d.Watch(d.Address(), func(error) {})
	require.ErrorIs(t, err, verbs.ErrClosed)
}

// Frames counts what leaves with data or a request: two writes, and the response to a read.
func TestFrames(t *testing.T) {
	s := simtest.With(t, sim.Ideal(), 1)
	a, b := two(t, s, 1<<17)
	run(t, s, func() {
		a.post(b, verbs.OpRDMAWrite, verbs.Signalled, 1<<17)
		a.post(b, verbs.OpRDMAWrite, verbs.Signalled, 8)
		a.post(b, verbs.OpRDMARead, verbs.Signalled, 1<<17)
		a.completions(3)
	})
	require.Equal(t, uint64(3), a.Frames())
	require.Equal(t, uint64(1), b.Frames())
}

// A trace says where bytes are: those that are sent never overlap on one way out.
func TestTraceOfTheLink(t *testing.T) {
	p := simtest.Profile(t, "pcix-2005")
	s := simtest.With(t, p, 1)
	a, b := two(t, s, 1<<20)
	var free [2]time.Duration
	sent := [2]int{}
	kinds := map[sim.EventKind]int{}
	s.Trace(func(e sim.Event) {
		kinds[e.Kind]++
		if e.Kind != sim.Sent {
			return
		}
		if e.At < free[e.Rank] || e.Until < e.At {
			t.Errorf("%v, and the way out was taken until %v", e, free[e.Rank])
		}
		free[e.Rank] = e.Until
		sent[e.Rank] += e.Bytes
	})
	random := rand.New(rand.NewPCG(1, 1))
	total := 0
	run(t, s, func() {
		for range 40 {
			n := random.IntN(1 << 16)
			a.post(b, []verbs.Opcode{verbs.OpRDMAWrite, verbs.OpRDMARead}[random.IntN(2)], verbs.Signalled, n)
			total += n
		}
		a.completions(40)
	})
	require.Equal(t, total, sent[0]+sent[1])
	require.Equal(t, 40, kinds[sim.Posted])
	require.Equal(t, 40, kinds[sim.Completed])
	require.NotZero(t, kinds[sim.Placed])
	require.Equal(t, p.Name, s.Profile().Name)
}

func TestEventKindsHaveNames(t *testing.T) {
	for kind := sim.Posted; kind <= sim.Healed; kind++ {
		if text := kind.String(); text == "" || strings.Contains(text, "EventKind") {
			t.Errorf("kind %d is %q", kind, text)
		}
	}
	require.Equal(t, "EventKind(200)", fmt.Sprint(sim.EventKind(200)))
}
