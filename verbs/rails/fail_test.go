package rails_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/simtest"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/rails"
	"github.com/onesided/rma/verbs/sim"
	"github.com/onesided/rma/verbs/tcp"
)

// A rail that fails while requests are outstanding fails the queue pair, on both sides: what was
// carried out completes, then comes what failed, and the rest is flushed; the error says which rail
// it was.
func TestRailFails(t *testing.T) {
	// With these the peer notices first, and ends the other rails.
	for _, seed := range []uint64{84, 1001, 2100, 3222} {
		failRail(t, seed, sim.FailPair)
	}
	for seed := range testsize.Samples(t, 30) {
		failRail(t, seed, sim.FailPair)
	}
}

// The same of a rail over which nothing comes any more. The others work until they are disconnected for that.
func TestRailFallsSilent(t *testing.T) {
	for seed := range testsize.Samples(t, 15) {
		failRail(t, seed, sim.Stall)
	}
}

// A side that finds the other rails disconnected and one silent blames the silent one, whichever it sees first.
func TestSilentRailIsToBlame(t *testing.T) {
	const cards, silent, size = 3, 1, 1 << 20
	s := simtest.New(t, "ndr-2024", 1)
	nodes := simulated(t, s, 0, 2, cards, size)
	near, far := nodes[0], nodes[1]
	stalled := false
	s.Go("far", func() {
		far.accept()
		far.until(func() bool { far.queue.Poll(nil); return stalled })
		far.pair.(verbs.Severer).Sever()
	})
	s.Go("near", func() {
		near.connect(far.Address())
		near.warm(far)
		for _, way := range []sim.Direction{sim.Out, sim.In} {
			require.NoError(t, s.Inject(sim.Fault{Kind: sim.Stall, Rank: near.cards[silent].Rank(), Direction: way, At: near.Now()}))
		}
		near.cards[0].Compute(time.Microsecond)
		_, err := near.pair.PostSend([]verbs.SendRequest{near.request(verbs.OpRDMAWrite, verbs.Signalled, 0, size, far, 0)})
		require.NoError(t, err)
		stalled = true
		far.Channel().Wake()
		near.cards[0].Compute(time.Minute)
		// The call has the simulator catch up, and takes no completion.
		require.Zero(t, near.PollConnections(make([]verbs.ConnectionRequest, 1)))
		require.Equal(t, verbs.StateError, near.pair.State())
		require.ErrorContains(t, near.pair.Err(), fmt.Sprintf("rail %d", silent))
		require.NotEqual(t, verbs.StatusSuccess, near.completions(1)[0].Status)
		require.ErrorContains(t, near.pair.Err(), fmt.Sprintf("rail %d", silent))
		require.ErrorIs(t, near.pair.Err(), verbs.StatusRetryExceeded)
	})
	require.NoError(t, s.Run())
}

// The same over TCP, where the silence of a peer looks like any other end of it.
func TestSilentLinkIsToBlame(t *testing.T) {
	t.Parallel()
	open := func(silence time.Duration) (*node, []verbs.CompletionQueue) {
		var links []verbs.Device
		var queues []verbs.CompletionQueue
		for _, limit := range []time.Duration{time.Hour, silence} {
			link, err := tcp.Open(tcp.Options{Silence: limit, HandshakeLimit: await.Limit})
			require.NoError(t, err)
			queue, err := link.CreateCompletionQueue(1)
			require.NoError(t, err)
			links, queues = append(links, link), append(queues, queue)
		}
		device, err := rails.New(links...)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, device.Close()) })
		return newNode(t, device, 8), queues
	}
	// The far side answers until it is connected, which takes less than the silence after which the near one gives up
	// the second link.
	near, drive := open(2 * time.Second)
	far, _ := open(time.Hour)
	var err error
	near.pair, err = near.Connect(far.Address(), nil, near.config())
	require.NoError(t, err)
	requests := make([]verbs.ConnectionRequest, 1)
	await.True(t, "the connection", func() bool {
		near.queue.Poll(nil)
		far.queue.Poll(nil)
		if far.pair == nil && far.PollConnections(requests) > 0 {
			far.pair, err = requests[0].Accept(far.config())
			require.NoError(t, err)
		}
		return far.pair != nil && near.pair.State() != verbs.StateConnecting
	})
	links := rails.Pairs(near.pair)
	rails.Pairs(far.pair)[0].(verbs.Severer).Sever()
	// It sees both ends before it looks at either.
	await.True(t, "both links to end", func() bool {
		for _, queue := range drive {
			queue.Poll(nil)
		}
		return links[0].State() == verbs.StateError && links[1].State() == verbs.StateError
	})
	require.ErrorContains(t, near.pair.Err(), "rail 1: ")
	require.ErrorContains(t, near.pair.Err(), "the peer was silent for")
}

// failRail has a rail of a seed fail.
func failRail(t *testing.T, seed uint64, kind sim.FaultKind) {
	const cards, size = 3, 256 << 10
	rail := int(seed % cards)
	s := simtest.New(t, "ndr-2024", seed)
	nodes := simulated(t, s, 0, 2, cards, 2*size)
	near, far := nodes[0], nodes[1]
	for _, n := range nodes {
		rails.StripeFrom(n.Device, 4096)
	}
	s.Go("far", func() {
		far.accept()
		_, err := far.pair.PostReceive([]verbs.ReceiveRequest{{}, {}})
		require.NoError(t, err)
		for _, c := range far.take(far.receives, 2) {
			require.Equal(t, verbs.StatusFlushed, c.Status)
		}
		require.Equal(t, verbs.StateError, far.pair.State())
		require.ErrorIs(t, far.pair.Err(), verbs.ErrPeerGone)
	})
	s.Go("near", func() {
		near.connect(far.Address())
		near.warm(far)
		random := rand.New(rand.NewPCG(seed, 4))
		require.NoError(t, s.Inject(sim.Fault{Kind: kind, Rank: near.cards[rail].Rank(), Peer: far.cards[rail].Rank(), At: near.Now() + time.Duration(random.IntN(40000))}))
		failed := false
		for round := uint64(0); !failed; round++ {
			var requests []verbs.SendRequest
			for range 8 {
				r := near.request(verbs.OpRDMAWrite, verbs.Signalled, size, 1+random.IntN(size/8), far, random.IntN(size))
				if random.IntN(3) == 0 {
					r = near.request(verbs.OpRDMARead, verbs.Signalled, random.IntN(size), 1+random.IntN(size/8), far, 0)
				}
				r.ID = round*8 + uint64(len(requests))
				requests = append(requests, r)
			}
			_, err := near.pair.PostSend(requests)
			require.NoError(t, err)
			for i, c := range near.completions(8) {
				require.Equal(t, round*8+uint64(i), c.ID)
				require.True(t, !failed || c.Status == verbs.StatusFlushed, "seed %d: %+v", seed, c)
				failed = failed || c.Status != verbs.StatusSuccess
			}
		}
		require.Equal(t, verbs.StateError, near.pair.State())
		require.ErrorContains(t, near.pair.Err(), fmt.Sprintf("rail %d", rail), "seed %d", seed)
		_, err := near.pair.PostSend([]verbs.SendRequest{near.request(verbs.OpRDMAWrite, 0, 0, size, far, 0)})
		require.NoError(t, err)
		require.Equal(t, verbs.StatusFlushed, near.completions(1)[0].Status)
		require.NoError(t, near.pair.Close())
		require.NoError(t, near.queue.Close())
	})
	require.NoError(t, s.Run())
	for _, n := range nodes {
		require.Zero(t, rails.OnOthers(n.Device), "seed %d", seed)
		require.NoError(t, n.Close())
	}
}
