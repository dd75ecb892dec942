package shm

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/verbs"
)

// side is one end of a connection with what a test needs of it: a region of its own
// for segments, open to the peer.
type side struct {
	t      testing.TB
	device *Device
	pair   *queuePair
	queue  verbs.CompletionQueue
	memory []byte
	region verbs.MemoryRegion
}

// both are the forms of a device as tests open them.
var both = []struct {
	name string
	open func(t testing.TB) func() *Device
}{
	{"fabric", openFabric},
	{"process", openProcesses},
}

func openFabric(t testing.TB) func() *Device {
	fabric := NewFabric()
	return func() *Device {
		device, err := fabric.Open()
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, device.Close()) })
		return device
	}
}

// connected are the two ends of a new connection between two devices of open.
func connected(t testing.TB, open func() *Device, config verbs.QueuePairConfig) (near, far *side) {
	t.Helper()
	near, far = newSide(t, open()), newSide(t, open())
	near.join(far, config)
	return near, far
}

// join connects two sides.
func (s *side) join(far *side, config verbs.QueuePairConfig) {
	s.t.Helper()
	s.connect(far.device.Address(), config)
	request := far.request()
	config.SendQueue, config.ReceiveQueue = far.queue, far.queue
	pair, err := request.Accept(config)
	require.NoError(s.t, err)
	far.pair = pair.(*queuePair)
	s.await(func() bool { return s.pair.State() == verbs.StateReady }, "ready")
}

func newSide(t testing.TB, device *Device) *side {
	t.Helper()
	s := &side{t: t, device: device}
	var err error
	s.queue, err = device.CreateCompletionQueue(1024)
	require.NoError(t, err)
	s.memory, err = device.AllocateMemory(64 << 10)
	require.NoError(t, err)
	s.region, err = device.RegisterMemory(s.memory, verbs.LocalWrite|verbs.RemoteWrite|verbs.RemoteRead|verbs.RemoteAtomic)
	require.NoError(t, err)
	return s
}

func (s *side) connect(address string, config verbs.QueuePairConfig) {
	s.t.Helper()
	config.SendQueue, config.ReceiveQueue = s.queue, s.queue
	pair, err := s.device.Connect(address, nil, config)
	require.NoError(s.t, err)
	s.pair = pair.(*queuePair)
}

// request is the next connection that a peer wants.
func (s *side) request() verbs.ConnectionRequest {
	s.t.Helper()
	var requests [1]verbs.ConnectionRequest
	s.await(func() bool { return s.device.PollConnections(requests[:]) == 1 }, "a connection request")
	return requests[0]
}

// await sleeps on the channel until what is looked for is there; each look polls.
func (s *side) await(there func() bool, what string) {
	s.t.Helper()
	channel := s.device.Channel()
	for start := time.Now(); ; {
		ticket := channel.Prepare()
		s.queue.Poll(nil)
		done := there()
		if !done {
			channel.Sleep(ticket, 100*time.Millisecond)
		}
		channel.Finish()
		if done {
			return
		}
		require.Less(s.t, time.Since(start), time.Minute, "no %s", what)
	}
}

// completions are the next n.
func (s *side) completions(n int) []verbs.Completion {
	s.t.Helper()
	into := make([]verbs.Completion, n)
	got := 0
	s.await(func() bool { got += s.queue.Poll(into[got:]); return got == n }, "completion")
	return into
}

// segment is one of n bytes of the side's memory at offset.
func (s *side) segment(offset, n int) []verbs.Segment {
	return []verbs.Segment{{Memory: s.memory[offset : offset+n], LKey: s.region.LKey()}}
}

func (s *side) send(id uint64, n int) {
	s.t.Helper()
	_, err := s.pair.PostSend([]verbs.SendRequest{{ID: id, Opcode: verbs.OpSend, Flags: verbs.Signalled, Segments: s.segment(0, n)}})
	require.NoError(s.t, err)
}

// receive posts receives of n bytes, together.
func (s *side) receive(n int, ids ...uint64) {
	s.t.Helper()
	var requests []verbs.ReceiveRequest
	for _, id := range ids {
		requests = append(requests, verbs.ReceiveRequest{ID: id, Segments: s.segment(0, n)})
	}
	_, err := s.pair.PostReceive(requests)
	require.NoError(s.t, err)
}

// ended is what of a completion tells how a request ended.
type ended struct {
	id     uint64
	status verbs.Status
}

func endings(completions []verbs.Completion) []ended {
	all := make([]ended, 0, len(completions))
	for _, c := range completions {
		all = append(all, ended{c.ID, c.Status})
	}
	return all
}
