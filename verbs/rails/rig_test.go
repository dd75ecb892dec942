package rails_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/simtest"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/rails"
	"github.com/onesided/rma/verbs/sim"
)

const all = verbs.LocalWrite | verbs.RemoteWrite | verbs.RemoteRead | verbs.RemoteAtomic

// A node is a rank with memory and a queue pair with another.
type node struct {
	verbs.Device
	t      testing.TB
	memory []byte
	region verbs.MemoryRegion
	// queue is of sends, receives of receives.
	queue, receives verbs.CompletionQueue
	pair            verbs.QueuePair
	// cards are the rails in a simulator.
	cards []*sim.Device
	into  [16]verbs.Completion
}

// newNode gives a rank with bytes of memory.
func newNode(t testing.TB, device verbs.Device, bytes int) *node {
	t.Helper()
	n := &node{Device: device, t: t}
	var err error
	n.memory, err = device.AllocateMemory(bytes)
	require.NoError(t, err)
	n.region, err = device.RegisterMemory(n.memory, all)
	require.NoError(t, err)
	n.queue, err = device.CreateCompletionQueue(1 << 12)
	require.NoError(t, err)
	n.receives, err = device.CreateCompletionQueue(1 << 12)
	require.NoError(t, err)
	return n
}

// simulated gives ranks whose cards are rails of a simulator's, but for one rail a rank's own.
func simulated(t testing.TB, s *sim.Simulator, without rails.Optimization, ranks, cards, bytes int) []*node {
	t.Helper()
	nodes := make([]*node, ranks)
	for i := range nodes {
		first := s.Open()
		devices, opened := []verbs.Device{first}, []*sim.Device{first}
		for len(devices) < cards {
			rail := first.OpenRail()
			devices, opened = append(devices, rail), append(opened, rail)
		}
		device, err := rails.NewWithout(without, devices...)
		require.NoError(t, err)
		nodes[i] = newNode(t, device, bytes)
		nodes[i].cards = opened
	}
	return nodes
}

// oneSided has the near one of two ranks do something, connected with the far one, which only polls.
func oneSided(t testing.TB, profile string, without rails.Optimization, cards, bytes int, do func(near, far *node)) {
	t.Helper()
	s := simtest.New(t, profile, 1)
	nodes := simulated(t, s, without, 2, cards, bytes)
	near, far := nodes[0], nodes[1]
	over := false
	s.Go("far", func() {
		far.accept()
		far.until(func() bool { far.queue.Poll(nil); return over })
	})
	s.Go("near", func() {
		near.connect(far.Address())
		near.warm(far)
		do(near, far)
		over = true
		far.Channel().Wake()
	})
	require.NoError(t, s.Run())
}

// until polls, and sleeps on the channel, until done, which is not called again then.
func (n *node) until(done func() bool) {
	channel := n.Channel()
	for over := done(); !over; {
		ticket := channel.Prepare()
		if over = done(); !over {
			channel.Sleep(ticket, -1)
		}
		channel.Finish()
	}
}

func (n *node) config() verbs.QueuePairConfig {
	return verbs.QueuePairConfig{SendQueue: n.queue, ReceiveQueue: n.receives}
}

// connect connects to the node at an address, accept takes the connection.
func (n *node) connect(address string) {
	var err error
	n.pair, err = n.Connect(address, nil, n.config())
	require.NoError(n.t, err)
	n.until(func() bool { n.queue.Poll(nil); return n.pair.State() != verbs.StateConnecting })
}

func (n *node) accept() {
	n.until(func() bool {
		var requests [1]verbs.ConnectionRequest
		n.queue.Poll(nil)
		if n.PollConnections(requests[:]) == 0 {
			return false
		}
		var err error
		n.pair, err = requests[0].Accept(n.config())
		require.NoError(n.t, err)
		return true
	})
}

// completions gives the next of sends.
func (n *node) completions(count int) []verbs.Completion { return n.take(n.queue, count) }

// received takes a message.
func (n *node) received() {
	require.Equal(n.t, verbs.StatusSuccess, n.take(n.receives, 1)[0].Status)
}

func (n *node) take(queue verbs.CompletionQueue, count int) (got []verbs.Completion) {
	n.until(func() bool {
		k := queue.Poll(n.into[:min(count-len(got), len(n.into))])
		got = append(got, n.into[:k]...)
		return len(got) == count
	})
	return got
}

// request is one on memory of another node of the same size, from or into this one's.
func (n *node) request(op verbs.Opcode, flags verbs.Flags, mine, bytes int, of *node, offset int) verbs.SendRequest {
	remote := of.region.Remote()
	return verbs.SendRequest{Opcode: op, Flags: flags, RemoteAddress: remote.Address + uint64(offset), RKey: remote.RKey,
		Segments: []verbs.Segment{{Memory: n.memory[mine : mine+bytes], LKey: n.region.LKey()}}}
}

// do posts requests, of which the last is signalled, and waits for that.
func (n *node) do(requests ...verbs.SendRequest) verbs.Completion {
	requests[len(requests)-1].Flags |= verbs.Signalled
	taken, err := n.pair.PostSend(requests)
	require.NoError(n.t, err)
	require.Len(n.t, requests, taken)
	return n.completions(1)[0]
}

// warm has the node learn the keys of another's memory, if it ever requests them.
func (n *node) warm(of *node) {
	for i := 0; i < 10 && rails.Known(n.pair) == 0; i++ {
		require.Equal(n.t, verbs.StatusSuccess, n.do(n.request(verbs.OpRDMARead, 0, 0, len(n.memory), of, 0)).Status)
	}
}
