//go:build ibverbs && cgo && linux

package ibv

import (
	"fmt"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/nulldev"
	"github.com/onesided/rma/verbs"
)

// nullPair is a queue pair that is connected, of a card that does nothing.
func nullPair(t testing.TB, depth int) (*queuePair, *completionQueue) {
	pair, cq, free := nulldev.New()
	t.Cleanup(free)
	d := &device{name: "nulldev", attributes: verbs.Attributes{Name: "ibv:nulldev", MaxInline: mostInline, MaxSegments: mostSegments, MaxMessage: 1 << 30}}
	d.channel = newArmedChannel(func() {})
	c := &completionQueue{device: d, capacity: depth}
	q := &queuePair{device: d, sends: c, receives: c, sending: newRing(depth), receiving: newRing(depth), live: true, open: true}
	// Sound: the fields are pointers to just what nulldev has made.
	*(*unsafe.Pointer)(unsafe.Pointer(&q.raw)) = pair
	*(*unsafe.Pointer)(unsafe.Pointer(&c.queue)) = cq
	require.NoError(t, d.pairs.add(q))
	q.state.Store(uint32(verbs.StateReady))
	return q, c
}

// writes are requests of which the last is signalled.
func writes(n int) []verbs.SendRequest {
	memory := make([]byte, 64)
	requests := make([]verbs.SendRequest, n)
	for i := range requests {
		requests[i] = verbs.SendRequest{ID: uint64(i), Opcode: verbs.OpRDMAWrite, RemoteAddress: 1 << 20, RKey: 7, Segments: []verbs.Segment{{Memory: memory, LKey: 9}}}
	}
	requests[n-1].Flags = verbs.Signalled
	return requests
}

// What it costs to post requests together, and to poll as many completions: the foreign call
// alone, and all that this package does.
func BenchmarkPost(b *testing.B) {
	for _, n := range []int{1, 16, 64} {
		requests := writes(n)
		b.Run(fmt.Sprintf("call:%d", n), func(b *testing.B) {
			q, c := nullPair(b, 128)
			var buffer postBuffer
			var done completions
			b.ReportAllocs()
			for b.Loop() {
				for i := range requests {
					buffer.send(uint64(i), &requests[i], verbs.Signalled)
				}
				if taken, err := q.raw.postSends(&buffer); taken != n || err != nil {
					b.Fatal(taken, err)
				}
				buffer.clear()
				if got := c.queue.poll(&done, n); got != n {
					b.Fatal(got)
				}
			}
			perRequest(b, n)
		})
		for i := range requests {
			requests[i].Flags = verbs.Signalled
		}
		b.Run(fmt.Sprintf("signalled:%d", n), func(b *testing.B) { postAndPoll(b, requests, n) })
		requests = writes(n)
		b.Run(fmt.Sprintf("last:%d", n), func(b *testing.B) { postAndPoll(b, requests, 1) })
	}
}

// postAndPoll posts requests and polls the completions that they have.
func postAndPoll(b *testing.B, requests []verbs.SendRequest, completions int) {
	q, c := nullPair(b, 128)
	into := make([]verbs.Completion, len(requests))
	b.ReportAllocs()
	for b.Loop() {
		n, err := q.PostSend(requests)
		if got := c.Poll(into); n != len(requests) || err != nil || got != completions {
			b.Fatal(n, err, got)
		}
	}
	perRequest(b, len(requests))
}

func perRequest(b *testing.B, n int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/request")
}

// Posting and polling allocate nothing.
func TestPostingAllocatesNothing(t *testing.T) {
	q, c := nullPair(t, 128)
	requests, into := writes(64), make([]verbs.Completion, 4)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		n, err := q.PostSend(requests)
		if n != 64 || err != nil || c.Poll(into) != 1 || into[0].ID != 63 || into[0].Status != verbs.StatusSuccess {
			t.Fatal(n, err, into)
		}
	}))
	// What is not signalled is outstanding until something behind it completes.
	full := writes(129)
	for i := range full {
		full[i].Flags = 0
	}
	n, err := q.PostSend(full)
	require.Equal(t, 128, n)
	require.ErrorIs(t, err, verbs.ErrQueueFull)
	require.Zero(t, c.Poll(into))
}

// If the card can report nothing any more, all requests are flushed, also unsignalled ones.
func TestAbandonedCard(t *testing.T) {
	q, c := nullPair(t, 8)
	requests, into := writes(8), make([]verbs.Completion, 8)
	for i := range requests {
		requests[i].Flags = 0
	}
	n, err := q.PostSend(requests)
	require.NoError(t, err)
	require.Equal(t, 8, n)
	q.receiving.given.Store(q.receiving.put(entry{id: 100}) + 1)
	// As if it had failed before, and what marks the end had been posted.
	q.err = verbs.ErrPeerGone
	q.unwell()
	require.Zero(t, c.Poll(into))
	q.abandonCard(verbs.ErrPeerGone)
	require.Equal(t, 8, c.Poll(into))
	for i := range into {
		require.Equal(t, verbs.Completion{ID: uint64(i), Status: verbs.StatusFlushed, Opcode: verbs.OpRDMAWrite}, into[i])
	}
	require.Equal(t, 1, c.Poll(into))
	require.Equal(t, verbs.Completion{ID: 100, Status: verbs.StatusFlushed, Opcode: verbs.OpReceive}, into[0])
	require.Zero(t, c.Poll(into))
}

// A sleep does not begin after Wake. Without Wake it ends with its limit.
func TestArmedChannel(t *testing.T) {
	armed := 0
	c := newArmedChannel(func() { armed++ })
	c.Wake()
	ticket := c.Prepare()
	require.Equal(t, 1, armed)
	c.Wake()
	c.Sleep(ticket, -1)
	c.Finish()
	for _, limit := range []time.Duration{0, time.Microsecond, time.Millisecond} {
		ticket = c.Prepare()
		c.Sleep(ticket, limit)
		c.Finish()
	}
	require.Zero(t, testing.AllocsPerRun(20, func() {
		ticket := c.Prepare()
		c.Sleep(ticket, time.Microsecond)
		c.Finish()
	}))
}
