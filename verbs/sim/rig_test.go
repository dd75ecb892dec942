package sim_test

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/sim"
)

const all = verbs.LocalWrite | verbs.RemoteWrite | verbs.RemoteRead | verbs.RemoteAtomic

// A node is a rank with memory, which every node's peers may use.
type node struct {
	*sim.Device
	memory []byte
	region verbs.MemoryRegion
	queue  verbs.CompletionQueue
	pairs  map[int]verbs.QueuePair
	// into and request are used again and again.
	into    [8]verbs.Completion
	request [1]verbs.SendRequest
	segment [1]verbs.Segment
}

// nodes opens n devices with bytes of memory each.
func nodes(t testing.TB, s *sim.Simulator, n, bytes int) []*node {
	t.Helper()
	made := make([]*node, n)
	for i := range made {
		d := s.Open()
		memory, err := d.AllocateMemory(bytes)
		require.NoError(t, err)
		region, err := d.RegisterMemory(memory, all)
		require.NoError(t, err)
		queue, err := d.CreateCompletionQueue(1 << 12)
		require.NoError(t, err)
		made[i] = &node{Device: d, memory: memory, region: region, queue: queue, pairs: map[int]verbs.QueuePair{}}
	}
	return made
}

func (n *node) config() verbs.QueuePairConfig {
	return verbs.QueuePairConfig{SendQueue: n.queue, ReceiveQueue: n.queue}
}

// until sleeps on the node's channel until done.
func (n *node) until(done func() bool) {
	channel := n.Channel()
	for !done() {
		ticket := channel.Prepare()
		if !done() {
			channel.Sleep(ticket, -1)
		}
		channel.Finish()
	}
}

// connect connects to another node, which accepts.
func (n *node) connect(to *node) {
	n.knock(to)
	n.ready(to)
}

// knock begins to connect.
func (n *node) knock(to *node) {
	q, err := n.Connect(to.Address(), fmt.Append(nil, n.Rank()), n.config())
	if err != nil {
		panic(err)
	}
	n.pairs[to.Rank()] = q
}

// ready waits for a connection.
func (n *node) ready(to *node) {
	q := n.pairs[to.Rank()]
	n.until(func() bool { n.queue.Poll(nil); return q.State() != verbs.StateConnecting })
}

func (n *node) accept(count int) {
	n.until(func() bool {
		var requests [4]verbs.ConnectionRequest
		for _, r := range requests[:n.PollConnections(requests[:])] {
			var from int
			fmt.Sscan(string(r.Hello()), &from)
			q, err := r.Accept(n.config())
			if err != nil {
				panic(err)
			}
			n.pairs[from] = q
			count--
		}
		return count == 0
	})
}

// completions waits for n of them, which have to be successes.
func (n *node) completions(count int) {
	for {
		got := n.queue.Poll(n.into[:])
		for _, c := range n.into[:got] {
			if c.Status != verbs.StatusSuccess {
				panic(c.Status)
			}
		}
		if count -= got; count <= 0 {
			return
		}
		if got > 0 {
			continue
		}
		ticket := n.Channel().Prepare()
		n.Channel().Sleep(ticket, -1)
		n.Channel().Finish()
	}
}

// post posts one request over the first bytes of both memories.
func (n *node) post(to *node, opcode verbs.Opcode, flags verbs.Flags, bytes int) {
	n.segment[0] = verbs.Segment{Memory: n.memory[:bytes], LKey: n.region.LKey()}
	remote := to.region.Remote()
	n.request[0] = verbs.SendRequest{Opcode: opcode, Flags: flags, Segments: n.segment[:], RemoteAddress: remote.Address, RKey: remote.RKey, Operand: 1}
	if _, err := n.pairs[to.Rank()].PostSend(n.request[:]); err != nil {
		panic(err)
	}
}

// word is the memory's first.
func (n *node) word() uint64 { return binary.NativeEndian.Uint64(n.memory) }

func (n *node) set(v uint64) { binary.NativeEndian.PutUint64(n.memory, v) }

// run runs bodies as tasks, and fails the test unless they end.
func run(t testing.TB, s *sim.Simulator, bodies ...func()) {
	t.Helper()
	for i, body := range bodies {
		s.Go(fmt.Sprint("rank ", i), body)
	}
	require.NoError(t, s.Run())
}

// two connects two nodes.
func two(t testing.TB, s *sim.Simulator, bytes int) (a, b *node) {
	t.Helper()
	made := nodes(t, s, 2, bytes)
	run(t, s, func() { made[0].connect(made[1]) }, func() { made[1].accept(1) })
	return made[0], made[1]
}

// close tells whether a time is within a hundredth, or 2 ns, of another.
func near(got, want time.Duration) bool {
	difference := got - want
	return max(difference, -difference) <= max(want/100, 2)
}
