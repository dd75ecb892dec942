package tcp

import (
	"reflect"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/allocs"
	"github.com/onesided/rma/internal/tlstest"
	"github.com/onesided/rma/verbs"
)

func sizeOf[T any]() int { return int(reflect.TypeFor[T]().Size()) }

// What the package's documentation says that a connection takes.
func TestSizes(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("skipped: the sizes that the documentation has are those of Linux, whose system calls take vectors of other types")
	}
	// A size class of the allocator may be an eighth larger. The rest of 3.5 KiB is what the device and the stream keep of
	// a connection, which TestIdleConnections measures.
	require.LessOrEqual(t, (sizeOf[connection]()+sizeOf[queuePair]()+sizeOf[socket]())*9/8, 3<<10, "bytes of a connection")
	segment := sizeOf[verbs.Segment]()
	require.Equal(t, 32, segment)
	require.Equal(t, 152, sizeOf[request]()+segment, "bytes for each request")
	require.Equal(t, 72, sizeOf[posted]()+segment, "bytes for each receive")
	require.Equal(t, 48, sizeOf[pendingResponse](), "bytes for each pending response")
	require.Equal(t, 10, (sizeOf[batch]()+1<<10-1)>>10, "KiB of memory for output")
	require.Equal(t, 9, (sizeOf[inputBuffer]()+1<<10-1)>>10, "KiB of memory for input")
}

// A traffic is two connected queue pairs, with requests of all kinds from one to the other.
type traffic struct {
	p, q     *queuePair
	requests []verbs.SendRequest
	receives []verbs.ReceiveRequest
	into     [16]verbs.Completion
}

// trafficBytes exceed what the socket takes at once, so that output waits for room.
const trafficBytes = 8 << 20

func newTraffic(p, q *queuePair, remote verbs.RemoteRegion, memory []byte) *traffic {
	c := &traffic{p: p, q: q}
	segment := func(n int) []verbs.Segment { return []verbs.Segment{{Memory: memory[:n], LKey: reservedLKey}} }
	for _, r := range []verbs.SendRequest{
		{Opcode: verbs.OpSend, Flags: verbs.Inline, Segments: segment(8)},
		{Opcode: verbs.OpRDMAWrite, Segments: segment(8)},
		{Opcode: verbs.OpFetchAdd, Segments: segment(8)},
		{Opcode: verbs.OpCompareSwap, Segments: segment(8)},
		{Opcode: verbs.OpRDMARead, Segments: segment(trafficBytes)},
		{Opcode: verbs.OpRDMAWrite, Segments: segment(trafficBytes)},
		{Opcode: verbs.OpRDMAWriteImmediate, Segments: segment(8)},
		{Opcode: verbs.OpSendImmediate, Segments: segment(1000)},
	} {
		r.Flags |= verbs.Signalled
		r.RKey, r.RemoteAddress = remote.RKey, remote.Address
		c.requests = append(c.requests, r)
	}
	c.receives = []verbs.ReceiveRequest{{Segments: segment(8)}, {}, {Segments: segment(1000)}}
	return c
}

// round makes all requests once.
func (c *traffic) round(t testing.TB) {
	n, err := c.q.PostReceive(c.receives)
	if n != len(c.receives) || err != nil {
		t.Fatal(n, err)
	}
	if n, err = c.p.PostSend(c.requests); n != len(c.requests) || err != nil {
		t.Fatal(n, err)
	}
	end := time.Now().Add(patience)
	for left := len(c.requests) + len(c.receives); left > 0; {
		if time.Now().After(end) {
			t.Fatalf("%d completions did not come", left)
		}
		for _, queue := range [2]*completionQueue{c.p.sendCQ, c.q.recvCQ} {
			n := queue.Poll(c.into[:])
			left -= n
			for i := range c.into[:n] {
				if c.into[i].Status != verbs.StatusSuccess {
					t.Fatal(c.into[i].Status, c.p.Err(), c.q.Err())
				}
			}
		}
	}
}

// freeCount returns how many batches are free.
func (b *batches) freeCount() int {
	count := 0
	for one := b.first; one != nil; one = one.next {
		count++
	}
	if b.quick.Load() != nil {
		count++
	}
	return count
}

// batchesInUse returns how many connections of a device have a batch.
func (d *device) batchesInUse() (count int) {
	for _, c := range *d.table.Load() {
		if c == nil {
			continue
		}
		c.mu.Lock()
		if c.out.batch != nil {
			count++
		}
		c.mu.Unlock()
	}
	return count
}

// owes reports whether a connection of a device has an acknowledgement to send, or wants a visit.
func (d *device) owes() bool {
	for _, c := range *d.table.Load() {
		if c == nil {
			continue
		}
		c.mu.Lock()
		owes := c.out.acknowledge || c.delayed.Load() || c.wantsVisit.Load()
		c.mu.Unlock()
		if owes {
			return true
		}
	}
	return false
}

// A connection that is idle takes a few KiB on the heap of either side, also one over which all kinds of requests and
// long payloads have gone.
func TestIdleConnections(t *testing.T) {
	near, far := openWith(t, Options{}), openWith(t, Options{})
	region := func(d *device) verbs.RemoteRegion {
		r, err := d.RegisterMemory(make([]byte, trafficBytes), rights)
		require.NoError(t, err)
		return r.Remote()
	}
	nearRegion, farRegion := region(near), region(far)
	nearMemory, farMemory := make([]byte, trafficBytes), make([]byte, trafficBytes)
	config, farConfig := queues(t, near), queues(t, far)
	connect := func() *traffic {
		p, err := near.Connect(far.Address(), nil, config)
		require.NoError(t, err)
		var requests [1]verbs.ConnectionRequest
		pollUntil(t, "the request", func() bool { return far.PollConnections(requests[:]) == 1 }, far, near)
		q, err := requests[0].Accept(farConfig)
		require.NoError(t, err)
		pollUntil(t, "the acceptance", func() bool { return p.State() == verbs.StateReady }, near, far)
		return newTraffic(p.(*queuePair), q.(*queuePair), farRegion, nearMemory)
	}
	heap := func() int {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	const connections = 32
	all := make([]*traffic, 0, 2*connections)
	all = append(all, connect())
	all[0].round(t)
	before := heap()
	for range connections {
		all = append(all, connect())
	}
	made := heap()
	for _, c := range all[1:] {
		back := newTraffic(c.q, c.p, nearRegion, farMemory)
		for range 3 {
			c.round(t)
			back.round(t)
		}
	}
	pollUntil(t, "the last acknowledgements", func() bool { return !near.owes() && !far.owes() }, near, far)
	require.Zero(t, near.batchesInUse()+far.batchesInUse())
	used := heap()
	const sides = 2 * connections
	t.Logf("%d bytes a side when made, %d when used", (made-before)/sides, (used-before)/sides)
	require.LessOrEqual(t, (made-before)/sides, 3<<10+512, "bytes of a connection that was made")
	require.LessOrEqual(t, (used-before)/sides, 8<<10, "bytes of a connection that was used")
	runtime.KeepAlive([]any{all, nearMemory, farMemory})
}

// Nothing is allocated for requests over connections that have had as many before, also when output waits for room. Rounds
// in which more output waits than in any before make room for it, so they are repeated. The devices do not trim their
// batches meanwhile, after which they would make some again: they do that every six minutes.
func TestNothingIsAllocatedForRequests(t *testing.T) {
	near, far := openWith(t, Options{}), openWith(t, Options{})
	r, err := far.RegisterMemory(make([]byte, trafficBytes), rights)
	require.NoError(t, err)
	var all []*traffic
	for range 2 {
		p, q := join(t, near, far)
		all = append(all, newTraffic(p, q, r.Remote(), make([]byte, trafficBytes)))
	}
	round := func() {
		for _, c := range all {
			c.round(t)
		}
	}
	for range 10 {
		round()
	}
	allocs.AtMost(t, 0, func() {
		for range 20 {
			round()
		}
	})
}

// A connection has a batch only while its output waits. Connections take turns with the look-ahead, also if headers
// arrive in pieces.
func TestMemoryOfTheDevice(t *testing.T) {
	near := newBare(t)
	d := near.device
	other := newBareOn(t, d, verbs.QueuePairConfig{SendQueue: near.queue, ReceiveQueue: near.queue})
	require.Zero(t, d.batchesInUse())
	for _, s := range []*bare{near, other} {
		s.full = true
		_, err := s.pair.PostSend([]verbs.SendRequest{{Opcode: verbs.OpRDMAWrite}})
		require.NoError(t, err)
	}
	require.Equal(t, 2, d.batchesInUse())
	require.Zero(t, d.batches.freeCount())
	for i, s := range []*bare{near, other} {
		s.full = false
		s.visit()
		require.Equal(t, 1-i, d.batchesInUse())
	}
	require.Equal(t, 2, d.batches.freeCount())

	// The headers of two connections come in pieces, in turn.
	memory := make([]byte, 16)
	r := near.region(memory, openKey, rights)
	for i, s := range []*bare{near, other} {
		write := message(frame{kind: kindWrite, request: 1, rkey: openKey, address: r.Remote().Address + 8*uint64(i), total: 8}, text(8))
		s.feed = append(s.feed, write...)
		s.piece = 5
	}
	for len(near.feed)+len(other.feed) > 0 {
		for _, s := range []*bare{near, other} {
			s.visit()
			require.NoError(t, s.pair.Err())
		}
	}
	require.Equal(t, text(16), string(memory))
	// The batch of a connection that ends comes back.
	near.full = true
	_, err := near.pair.PostSend([]verbs.SendRequest{{Opcode: verbs.OpRDMAWrite}})
	require.NoError(t, err)
	require.Equal(t, 1, d.batches.freeCount())
	near.connection.mu.Lock()
	near.fail(errWithdrawn, shutdownNow)
	near.connection.mu.Unlock()
	require.Equal(t, 2, d.batches.freeCount())
	// Of the batches that are not used from one tick to the next, one is kept.
	for range 2 {
		d.tick(d.Now())
	}
	require.Equal(t, 1, d.batches.freeCount())
}

// A device keeps as many free batches as were used at once since the last trim, and at least one.
func TestBatchesAreTrimmed(t *testing.T) {
	var b batches
	use := func(n int) {
		var taken []*batch
		for range n {
			taken = append(taken, b.take())
		}
		for _, one := range taken {
			b.put(one)
		}
	}
	use(5)
	for i, c := range []struct{ used, left int }{{5, 5}, {3, 3}, {3, 3}, {0, 1}, {0, 1}, {2, 2}} {
		use(c.used)
		b.trim()
		require.Equal(t, c.left, b.freeCount(), "step %d", i)
	}
}

// What TLS adds is the look-ahead, and nothing of the size of what was sent. Batches come back after TLS held bytes.
func TestSizeOfTLS(t *testing.T) {
	config := tlstest.Config(t, "127.0.0.1")
	near, far := openWith(t, Options{TLS: config}), openWith(t, Options{TLS: config})
	p, q := join(t, near, far)
	memory := make([]byte, trafficBytes)
	region, err := far.RegisterMemory(memory, rights)
	require.NoError(t, err)
	_, err = p.PostSend([]verbs.SendRequest{{
		Opcode: verbs.OpRDMAWrite, Flags: verbs.Signalled,
		Segments:      []verbs.Segment{{Memory: make([]byte, len(memory)), LKey: reservedLKey}},
		RemoteAddress: region.Remote().Address, RKey: region.Remote().RKey,
	}})
	require.NoError(t, err)
	pollUntil(t, "a full socket", func() bool {
		p.conn.mu.Lock()
		defer p.conn.mu.Unlock()
		return p.conn.stream.pending()
	}, near)
	require.Equal(t, 1, near.batchesInUse())
	var done [1]verbs.Completion
	pollUntil(t, "the completion", func() bool { return p.sendCQ.Poll(done[:]) == 1 }, near, far)
	require.Equal(t, verbs.StatusSuccess, done[0].Status)
	require.Zero(t, near.batchesInUse()+far.batchesInUse())
	for _, pair := range []*queuePair{p, q} {
		c := pair.conn.stream.(*secured).carrier
		require.Equal(t, 16<<10, cap(c.buffer)+cap(c.out), "bytes of an idle connection")
	}
}
