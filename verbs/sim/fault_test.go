package sim_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/simtest"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/sim"
)

const ms = time.Millisecond

// brittle is a card whose ways take 1 us, and which gives up after 1 ms.
func brittle(p *sim.Profile) {
	p.Wire, p.RetryTime, p.Notice, p.Silence = us, ms, 3*ms, 30*ms
}

// faults reads a plan.
func faults(t testing.TB, text string) sim.Faults {
	t.Helper()
	f, err := sim.ParseFaults(text)
	require.NoError(t, err)
	return f
}

// broken gives two connected nodes, and injects a plan whose times count from then on,
// which is begun.
func broken(t testing.TB, set func(p *sim.Profile), plan string) (s *sim.Simulator, a, b *node, begun time.Duration) {
	s = simtest.With(t, bare(func(p *sim.Profile) { brittle(p); set(p) }), 1)
	a, b = two(t, s, 1<<20)
	begun = max(a.Now(), b.Now())
	for _, f := range faults(t, plan) {
		f.At += begun
		require.NoError(t, s.Inject(f))
	}
	return s, a, b, begun
}

func nothing(*sim.Profile) {}

// write posts a signalled write and tells how it ended, and when.
func (n *node) written(to *node, bytes int) (verbs.Status, time.Duration) {
	n.post(to, verbs.OpRDMAWrite, verbs.Signalled, bytes)
	status := n.ended(1)[0].Status
	return status, n.Now()
}

func TestKill(t *testing.T) {
	s, a, b, begun := broken(t, nothing, "at 10us kill rank 1")
	var ended []string
	var noticed time.Duration
	a.Go("rank 0", func() {
		_, err := a.Watch(b.Address(), func(cause error) {
			require.ErrorIs(t, cause, verbs.ErrPeerGone)
			require.ErrorContains(t, cause, "the rank was killed")
			noticed = a.Now() - begun
		})
		require.NoError(t, err)
		a.wait(5 * us)
		status, at := a.written(b, 8)
		require.Equal(t, verbs.StatusSuccess, status)
		require.Equal(t, 7*us, at-begun)
		a.wait(20 * us)
		a.post(b, verbs.OpRDMAWrite, 0, 8)
		a.post(b, verbs.OpRDMARead, verbs.Signalled, 8)
		got := a.ended(2)
		require.Equal(t, ms+27*us, a.Now()-begun, "the retry time after it was sent")
		require.Equal(t, verbs.StatusRetryExceeded, got[0].Status)
		require.Equal(t, verbs.StatusFlushed, got[1].Status)
		require.ErrorIs(t, a.pairs[1].Err(), verbs.StatusRetryExceeded)
		require.ErrorIs(t, a.pairs[1].Err(), verbs.ErrPeerGone)
		require.NotErrorIs(t, a.pairs[1].Err(), verbs.ErrDisconnected)
		_, err = a.Connect(b.Address(), nil, a.config())
		require.NoError(t, err)
		a.wait(10 * us)
		a.Channel().Sleep(a.Channel().Prepare(), -1)
		a.Channel().Sleep(a.Channel().Prepare(), -1)
	})
	b.Go("rank 1", func() {
		defer func() {
			ended = append(ended, "rank 1")
			require.ErrorIs(t, b.pairs[0].Close(), nil)
			require.NoError(t, b.Close())
			_, err := b.pairs[0].PostSend(nil)
			require.ErrorIs(t, err, verbs.ErrClosed)
			_, err = b.AllocateMemory(8)
			require.ErrorIs(t, err, verbs.ErrClosed)
			require.ErrorIs(t, b.region.Deregister(), verbs.ErrClosed)
			require.Zero(t, b.queue.Poll(b.into[:]))
			b.Channel().Wake()
			s.Go("never", func() { ended = append(ended, "never") })
			defer func() { ended = append(ended, "rank 1 again") }()
			b.Channel().Sleep(b.Channel().Prepare(), us)
			ended = append(ended, "slept")
		}()
		s.Go("rank 1's second", func() {
			defer func() { ended = append(ended, "rank 1's second") }()
			for {
				b.Compute(us)
				b.queue.Poll(nil)
			}
		})
		b.Channel().Sleep(b.Channel().Prepare(), -1)
		b.Channel().Sleep(b.Channel().Prepare(), -1)
		ended = append(ended, "woken")
	})
	var deadlock *sim.DeadlockError
	require.ErrorAs(t, s.Run(), &deadlock, "rank 0 sleeps on")
	require.Len(t, deadlock.Waiters, 1)
	require.Equal(t, 10*us+3*ms, noticed)
	require.ElementsMatch(t, []string{"rank 1", "rank 1 again", "rank 1's second"}, ended)

	// The dead begin nothing, and who comes later to watch is told.
	b.Go("", func() { ended = append(ended, "never") })
	told := false
	run(t, s, func() {
		_, err := a.Watch(b.Address(), func(error) { told = true })
		require.NoError(t, err)
		a.wait(us)
	})
	require.True(t, told)
	require.Len(t, ended, 3)
}

// Requests that were under way when the peer died fail the retry time after they were
// sent, or after the last was answered; who was told to wait for a receive tries again
// before.
func TestKillOfWhatIsUnderWay(t *testing.T) {
	for _, c := range []struct {
		name   string
		body   func(a, b *node)
		status verbs.Status
		ends   time.Duration
	}{
		{"a write of which half has arrived", func(a, b *node) { a.post(b, verbs.OpRDMAWrite, verbs.Signalled, 1<<20) }, verbs.StatusRetryExceeded, 2*us + 98304 + ms},
		{"a message without a receive", func(a, b *node) { a.post(b, verbs.OpSend, verbs.Signalled, 8) }, verbs.StatusRetryExceeded, us + 8 + 2*102*us + ms},
		{"a read that waits behind others", func(a, b *node) {
			for range 100 {
				a.post(b, verbs.OpRDMARead, verbs.Signalled, 8)
			}
			a.completions(48)
		}, verbs.StatusRetryExceeded, 3*(32*us+8) + 14*8 + ms},
		{"nothing", func(a, b *node) { a.written(b, 8) }, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, a, b, begun := broken(t, func(p *sim.Profile) {
				p.Link, p.StarvedWait, p.Burst, p.TurnRead = 1e9, 100*us, 1<<15, 30*us
			}, "at 120us kill rank 1")
			b.Go("rank 1", func() { b.Channel().Sleep(b.Channel().Prepare(), -1) })
			run(t, s, func() {
				c.body(a, b)
				if c.status == 0 {
					a.wait(10 * ms)
					require.Equal(t, verbs.StateReady, a.pairs[1].State())
					return
				}
				got := a.ended(1)[0]
				require.Equal(t, c.status, got.Status)
				require.Equal(t, c.ends, a.Now()-begun)
			})
		})
	}
}

// A task that was killed before its first turn never begins; one that was killed while it
// was ahead of the clock, or polls, goes on to where it next sleeps: it may hold a lock
// that it needs to end.
func TestKillOfTasksThatDoNotSleep(t *testing.T) {
	s := simtest.With(t, sim.Ideal(), 1)
	d, other := s.Open(), s.Open()
	require.NoError(t, s.Inject(faults(t, "at 5us kill rank 0")...))
	var said []string
	d.Go("ahead", func() {
		defer func() { said = append(said, "ended") }()
		d.Compute(time.Second)
		said = append(said, "computed")
		d.PollConnections(nil)
		said = append(said, "polled")
		_, err := d.AllocateMemory(1)
		require.ErrorIs(t, err, verbs.ErrClosed)
		d.Channel().Sleep(d.Channel().Prepare(), 0)
		said = append(said, "slept")
	})
	var lock sync.Mutex
	d.Go("polling", func() {
		defer func() {
			lock.Lock()
			said = append(said, "ended polling")
		}()
		for {
			lock.Lock()
			d.PollConnections(nil)
			lock.Unlock()
			d.Channel().Sleep(d.Channel().Prepare(), us)
		}
	})
	run(t, s, func() { other.Compute(us); other.PollConnections(nil) })
	require.ElementsMatch(t, []string{"computed", "polled", "ended", "ended polling"}, said)
	d.Go("never", func() { said = append(said, "never") })
	run(t, s, func() {})
	require.Len(t, said, 4)
}

// A device that a rank's task opens is that rank's.
func TestKillOfARankWithTwoDevices(t *testing.T) {
	s := simtest.With(t, bare(brittle), 1)
	d, other := s.Open(), s.Open()
	require.NoError(t, s.Inject(faults(t, "at 5us kill rank 0")...))
	var second *sim.Device
	ended := 0
	d.Go("", func() {
		second = s.Open()
		second.Go("", func() {
			defer func() { ended++ }()
			second.Channel().Sleep(second.Channel().Prepare(), time.Second)
		})
		defer func() {
			ended++
			_, err := s.Open().AllocateMemory(1)
			require.ErrorIs(t, err, verbs.ErrClosed)
		}()
		d.Channel().Sleep(d.Channel().Prepare(), time.Second)
	})
	var told time.Duration
	run(t, s, func() {
		other.Compute(us)
		other.PollConnections(nil)
		_, err := other.Watch(second.Address(), func(error) { told = other.Now() })
		require.NoError(t, err)
		other.Channel().Sleep(other.Channel().Prepare(), 10*ms)
	})
	require.Equal(t, 2, ended)
	require.Equal(t, 3*ms+5*us, told)
}

// What a killed task panics with while it ends is Run's.
func TestPanicOfADyingTask(t *testing.T) {
	s := simtest.With(t, sim.Ideal(), 1)
	d := s.Open()
	require.NoError(t, s.Inject(faults(t, "at 5us kill rank 0")...))
	d.Go("", func() {
		defer func() { panic("while it ends") }()
		d.Channel().Sleep(d.Channel().Prepare(), -1)
	})
	require.PanicsWithValue(t, "while it ends", func() { _ = s.Run() })
	run(t, s, func() {})
}

func TestPowerLoss(t *testing.T) {
	s := simtest.With(t, bare(brittle), 1)
	made := nodes(t, s, 4, 64)
	require.NoError(t, s.Inject(faults(t, "at 1ms power-loss rank 1,3")...))
	var noticed, refused time.Duration
	ended := 0
	for i, n := range made {
		n.Go(fmt.Sprint("rank ", i), func() {
			defer func() { ended++ }()
			for _, to := range made[:i] {
				n.connect(to)
			}
			n.accept(len(made) - 1 - i)
			if i%2 == 1 {
				n.wait(time.Second)
				panic("alive")
			}
			n.wait(2*ms - n.Now())
			_, err := n.Watch(made[1].Address(), func(error) { noticed = n.Now() })
			require.NoError(t, err)
			q, err := n.Connect(made[3].Address(), nil, n.config())
			require.NoError(t, err)
			n.post(made[1], verbs.OpRDMAWrite, verbs.Signalled, 8)
			n.post(made[2-i], verbs.OpRDMAWrite, verbs.Signalled, 8)
			got := n.ended(2)
			require.Equal(t, verbs.StatusSuccess, got[0].Status)
			require.Equal(t, verbs.StatusRetryExceeded, got[1].Status)
			require.Equal(t, 3*ms, n.Now())
			n.until(func() bool { n.queue.Poll(nil); return q.State() == verbs.StateError })
			refused = n.Now()
			require.ErrorIs(t, q.Err(), verbs.ErrPeerGone)
			n.wait(40 * ms)
		})
	}
	require.NoError(t, s.Run())
	require.Equal(t, 4, ended)
	require.Equal(t, 3*ms, refused)
	require.Equal(t, 31*ms, noticed)
}

func TestFailPair(t *testing.T) {
	s, a, b, begun := broken(t, nothing, "at 10us fail-pair rank 1 peer 0")
	run(t, s, func() {
		a.post(b, verbs.OpSend, verbs.Signalled, 8)
		require.Equal(t, verbs.StatusFlushed, a.ended(1)[0].Status)
		require.Equal(t, 11*us, a.Now()-begun)
		require.ErrorIs(t, a.pairs[1].Err(), verbs.ErrPeerGone)
		require.NotErrorIs(t, a.pairs[1].Err(), verbs.ErrDisconnected)
	}, func() {
		b.until(func() bool { b.queue.Poll(nil); return b.pairs[0].State() == verbs.StateError })
		require.Equal(t, 10*us, b.Now()-begun)
		require.ErrorIs(t, b.pairs[0].Err(), sim.ErrFault)
	})
}

// A delay is added to each thing that passes, once; a stall ends at its time. What comes
// after either does not overtake what was held.
func TestDelayAndStall(t *testing.T) {
	for _, c := range []struct {
		plan   string
		begins time.Duration
		ends   []time.Duration
	}{
		{"at 10us delay rank 0 out by 100us for 20us", 10 * us, []time.Duration{112 * us, 114 * us}},
		{"at 10us delay rank 0 in by 100us for 20us", 10 * us, []time.Duration{112 * us, 114 * us}},
		{"at 10us delay rank 1 in by 100us for 20us", 10 * us, []time.Duration{112 * us, 114 * us}},
		{"at 10us delay rank 1 out by 100us for 20us", 10 * us, []time.Duration{112 * us, 114 * us}},
		{"at 1us delay rank 0 out by 100us\nat 10us delay rank 0 out by 1us for 20us", 10 * us, []time.Duration{112 * us, 214 * us}},
		{"at 10us stall rank 0 out for 20us", 10 * us, []time.Duration{32 * us, 34 * us}},
		{"at 10us stall rank 0 in for 20us", 10 * us, []time.Duration{30 * us, 32 * us}},
		{"at 10us stall rank 1 in for 20us", 10 * us, []time.Duration{31 * us, 33 * us}},
		{"at 10us stall rank 1 out for 20us", 10 * us, []time.Duration{31 * us, 33 * us}},
		{"at 10us stall rank 1 in for 20us\nat 29us stall rank 1 in for 20us", 10 * us, []time.Duration{50 * us, 52 * us}},
		{"at 10us stall rank 0 out for 20us", 31 * us, []time.Duration{33 * us, 35 * us}},
	} {
		s, a, b, begun := broken(t, nothing, c.plan)
		run(t, s, func() {
			a.wait(c.begins)
			for _, end := range c.ends {
				status, at := a.written(b, 8)
				require.Equal(t, verbs.StatusSuccess, status)
				require.Equal(t, end, at-begun, c.plan)
			}
		})
	}
}

// What is sent while things are late arrives in its order, behind what was sent before.
func TestNothingOvertakesInADelay(t *testing.T) {
	for _, plan := range []string{"delay rank 0 out by 50us for 10us", "delay rank 1 in by 50us for 10us", "stall rank 1 in for 10us", "stall rank 0 out for 10us"} {
		s, a, b, _ := broken(t, nothing, "at 5us "+plan)
		var order []uint64
		s.Trace(func(e sim.Event) {
			if e.Kind == sim.Placed {
				order = append(order, e.Request)
			}
		})
		run(t, s, func() {
			for i := range uint64(50) {
				a.wait(us)
				a.request[0] = verbs.SendRequest{ID: i, Opcode: verbs.OpRDMAWrite, Flags: verbs.Signalled | verbs.Inline, RemoteAddress: b.region.Remote().Address, RKey: b.region.Remote().RKey,
					Segments: []verbs.Segment{{Memory: binary.NativeEndian.AppendUint64(nil, i)}}}
				_, err := a.pairs[1].PostSend(a.request[:])
				require.NoError(t, err)
			}
			a.completions(50)
		})
		require.Len(t, order, 50, plan)
		require.IsIncreasing(t, order, plan)
	}
}

// A stall that is longer than a card has patience is as a death, to both sides; what is
// not sent then does not fail.
func TestStallForEver(t *testing.T) {
	for _, plan := range []string{"stall rank 0 out", "stall rank 0 in", "stall rank 1 out", "stall rank 1 in", "stall rank 0 in for 3ms", "delay rank 1 in by 5ms"} {
		s, a, b, begun := broken(t, nothing, "at 10us "+plan)
		run(t, s, func() {
			a.wait(10500)
			a.post(b, verbs.OpRDMARead, verbs.Signalled, 8)
			a.wait(100 * us)
			a.post(b, verbs.OpRDMARead, verbs.Signalled, 8)
			got := a.ended(2)
			require.Equal(t, verbs.StatusRetryExceeded, got[0].Status, plan)
			require.Equal(t, verbs.StatusFlushed, got[1].Status, plan)
			require.Equal(t, ms+10500, a.Now()-begun, plan)
		}, func() {
			b.wait(2 * ms)
			if b.pairs[0].State() == verbs.StateReady {
				b.wait(20 * us)
				status, at := b.written(a, 8)
				if status == verbs.StatusFlushed {
					return
				}
				require.Equal(t, verbs.StatusRetryExceeded, status, plan)
				require.Equal(t, 3*ms+20*us, at-begun, plan)
			}
		})
	}
}

// Who connects over a stalled link is not answered; one who does once it is well is.
func TestConnectOverAStalledLink(t *testing.T) {
	for _, plan := range []string{"stall rank 0 out", "stall rank 0 in", "stall rank 1 out", "stall rank 1 in"} {
		s := simtest.With(t, bare(brittle), 1)
		made := nodes(t, s, 2, 64)
		a, b := made[0], made[1]
		require.NoError(t, s.Inject(faults(t, "at 0s "+plan)...))
		run(t, s, func() {
			a.wait(us)
			a.connect(b)
			require.ErrorIs(t, a.pairs[1].Err(), verbs.ErrPeerGone)
			require.NotErrorIs(t, a.pairs[1].Err(), verbs.ErrDisconnected)
			require.Equal(t, ms+us, a.Now(), plan)
		}, func() {
			b.wait(10 * us)
			var requests [1]verbs.ConnectionRequest
			if b.PollConnections(requests[:]) == 1 {
				_, err := requests[0].Accept(b.config())
				require.NoError(t, err)
			}
		})
	}
	s := simtest.With(t, bare(brittle), 1)
	made := nodes(t, s, 2, 64)
	require.NoError(t, s.Inject(faults(t, "at 0s stall rank 1 in for 100us\nat 1us delay rank 0 in by 7us for 200us")...))
	run(t, s, func() {
		made[0].wait(us)
		made[0].connect(made[1])
		require.Equal(t, 100*us+us+7*us, made[0].Now())
		require.NoError(t, made[0].pairs[1].Err())
	}, func() { made[1].accept(1) })
}

func TestRejectMemory(t *testing.T) {
	s, a, _, begun := broken(t, func(p *sim.Profile) { p.Register = us }, "at 10us reject-memory rank 0 for 5us")
	run(t, s, func() {
		var refused []time.Duration
		for range 20 {
			r, err := a.RegisterMemory(a.memory[:8], all)
			if err != nil {
				require.ErrorIs(t, err, verbs.ErrMemory)
				require.ErrorIs(t, err, sim.ErrFault)
				refused = append(refused, a.Now()-begun)
				a.Compute(us)
			} else {
				require.NoError(t, r.Deregister())
			}
		}
		require.Equal(t, []time.Duration{10 * us, 11 * us, 12 * us, 13 * us, 14 * us}, refused)
	})
}

func TestOverflow(t *testing.T) {
	s := simtest.With(t, bare(brittle), 1)
	made := nodes(t, s, 3, 64)
	a := made[0]
	require.NoError(t, s.Inject(faults(t, "at 1ms overflow rank 0")...))
	run(t, s, func() {
		a.connect(made[1])
		a.connect(made[2])
		a.wait(2*ms - a.Now())
		a.post(made[1], verbs.OpRDMAWrite, verbs.Signalled, 8)
		a.post(made[1], verbs.OpRDMAWrite, verbs.Signalled, 8)
		got := a.ended(1)
		a.wait(us)
		got = append(got, a.into[:a.queue.Poll(a.into[:])]...)
		require.Len(t, got, 1, "the first says so, others are lost")
		require.Equal(t, verbs.StatusFlushed, got[0].Status)
		require.ErrorContains(t, a.pairs[1].Err(), "completion queue overflow")
		require.NoError(t, a.pairs[2].Err(), "nothing has completed there")
		a.post(made[2], verbs.OpRDMAWrite, verbs.Signalled, 8)
		require.Equal(t, verbs.StatusFlushed, a.ended(1)[0].Status)

		// A queue that is made later is as good as any.
		var err error
		a.queue, err = a.CreateCompletionQueue(4)
		require.NoError(t, err)
		a.connect(made[1])
		status, _ := a.written(made[1], 8)
		require.Equal(t, verbs.StatusSuccess, status)
	}, func() { made[1].accept(2) }, func() { made[2].accept(1) })
}

// Each time that no receive is found costs the sender the wait, and one that is told so too
// often gives up.
func TestStarveAndExhaust(t *testing.T) {
	for _, c := range []struct {
		plan   string
		status verbs.Status
		ends   time.Duration
	}{
		{"at 0s starve rank 1 times 3", verbs.StatusSuccess, 3*13*us + 2*us},
		{"at 0s exhaust rank 1", verbs.StatusRetryExceeded, 6*12*us + 2*us},
	} {
		s, a, b, begun := broken(t, func(p *sim.Profile) { p.StarvedWait = 10 * us }, c.plan)
		_, err := b.pairs[0].PostReceive(make([]verbs.ReceiveRequest, 2))
		require.NoError(t, err)
		starved := 0
		s.Trace(func(e sim.Event) {
			if e.Kind == sim.Starved {
				starved++
			}
		})
		run(t, s, func() {
			a.wait(us)
			a.post(b, verbs.OpSend, verbs.Signalled, 0)
			a.post(b, verbs.OpSend, verbs.Signalled, 0)
			got := a.ended(1)
			require.Equal(t, c.status, got[0].Status)
			require.Equal(t, us+c.ends, a.Now()-begun)
			if c.status == verbs.StatusSuccess {
				require.Equal(t, 3, starved)
			} else {
				require.ErrorIs(t, a.pairs[1].Err(), verbs.StatusRetryExceeded)
				require.Equal(t, verbs.StatusFlushed, got[1].Status)
			}
		})
	}
}

func TestSlow(t *testing.T) {
	s, a, b, begun := broken(t, func(p *sim.Profile) { p.Post = us }, "at 10us slow rank 0 by 1000 for 5ms")
	run(t, s, func() {
		a.Compute(8 * us)
		require.Equal(t, 2*us+1000*3*us, a.Takes(5*us))
		a.Compute(5 * us)
		require.Equal(t, 10*us+3*ms, a.Now()-begun, "2 of 5 us before it begins")
		a.post(b, verbs.OpRDMAWrite, verbs.Signalled, 8)
		require.Equal(t, 10*us+4*ms, a.Now()-begun)
		a.Compute(11 * us)
		require.Equal(t, 10*us+5*ms+10*us, a.Now()-begun, "1 of 11 us before it ends")
		b.Compute(us)
	})
}

// Faults count events, too, and are in the trace with their ends.
func TestFaultsInTheTrace(t *testing.T) {
	s, a, b, _ := broken(t, nothing, "at 1us slow rank 1 by 2 for 3us")
	require.NoError(t, s.Inject(sim.Fault{Event: s.Events() + 6, Kind: sim.PowerLoss, Ranks: []int{1, 9}}))
	require.NoError(t, s.Inject(sim.Fault{Event: 1, Kind: sim.Delay, By: us, Rank: 7}))
	var got []string
	s.Trace(func(e sim.Event) {
		if e.Kind == sim.Struck || e.Kind == sim.Healed {
			got = append(got, fmt.Sprintf("%s rank %d: %s", e.Kind, e.Rank, e.Fault))
		}
	})
	b.Go("rank 1", func() { b.Channel().Sleep(b.Channel().Prepare(), -1) })
	run(t, s, func() {
		a.wait(500)
		a.written(b, 8)
		a.wait(5 * us)
		status, _ := a.written(b, 8)
		require.Equal(t, verbs.StatusRetryExceeded, status)
	})
	// Ranks without a card are spared.
	require.Len(t, got, 3)
	require.Contains(t, got[0], "struck rank 1: at 3µs slow rank 1 by 2 for 3µs")
	require.Contains(t, got[1], "healed rank 1: at 3µs slow rank 1 by 2 for 3µs")
	require.Contains(t, got[2], "struck rank 1: at event ")
}

func TestFaultsAreChecked(t *testing.T) {
	s := simtest.With(t, sim.Ideal(), 1)
	for text, f := range map[string]sim.Fault{
		"no such kind; allowed are kill, power-loss":        {Kind: 99},
		"fault kill: at -1ns; allowed is 0 to":              {At: -1},
		"for -1ns; allowed is 0, which is for ever":         {Kind: sim.Stall, For: -1},
		"fault power-loss: no ranks":                        {Kind: sim.PowerLoss},
		"direction 2; allowed are Out and In":               {Kind: sim.Stall, Direction: 2},
		"fault delay: by 0s; allowed is 1ns to":             {Kind: sim.Delay},
		"fault slow: by 0; allowed is 1 to 1000000":         {Kind: sim.Slow},
		"fault starve: times 0; allowed is 1 to 1000000":    {Kind: sim.Starve},
		"fault fail-pair: rank -1; they count from 0":       {Kind: sim.FailPair, Peer: -1},
		"fault power-loss: rank -2; they count from 0":      {Kind: sim.PowerLoss, Ranks: []int{0, -2}},
		"fault FaultKind(77): no such kind; allowed are ki": {Kind: 77},
	} {
		err := s.Inject(f)
		require.ErrorContains(t, err, text)
		var argument *verbs.ArgumentError
		require.True(t, errors.As(err, &argument))
	}
}
