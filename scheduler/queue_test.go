package scheduler_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/aggregate"
	"github.com/onesided/rma/scheduler"
)

// TestDue adds operations until the queue is due.
func TestDue(t *testing.T) {
	const words, never = 2 * packet / 16, 1 << 14
	for _, c := range []struct {
		name   string
		scheme scheduler.Scheme
		kind   aggregate.Kind
		bytes  int
		after  int
	}{
		{"small puts, by their number", scheduler.All, aggregate.Put, 1, words},
		{"small gets, by their number", scheduler.All, aggregate.Get, 1, words},
		{"puts, by their bytes", scheduler.All, aggregate.Put, 1000, 8},
		{"gets, by their bytes", scheduler.All, aggregate.Get, 1000, 8},
		{"a large put", scheduler.All, aggregate.Put, 1 << 20, 1},
		{"accumulates, by their number", scheduler.All, aggregate.Accumulate, 32, words},
		{"fetches, by their number", scheduler.All, aggregate.Fetch, 32, words},
		{"swaps, by their number", scheduler.All, aggregate.Swap, 16, words},
		{"not early", without(scheduler.Early), aggregate.Put, 1, never},
		{"not early, however large", without(scheduler.Early), aggregate.Put, 1 << 20, never},
		{"not deferred", without(scheduler.Defer), aggregate.Put, 1, 1},
		{"not deferred nor early", without(scheduler.Defer | scheduler.Early), aggregate.Accumulate, 8, 1},
		{"no scheme", 0, aggregate.Get, 8, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := planner(c.scheme, true)
			var q scheduler.Queue
			// What was dropped is forgotten.
			q.Add(aggregate.Put, 1<<20)
			q.Drop(1)
			for n := 1; n <= c.after; n++ {
				q.Add(c.kind, c.bytes)
				require.Equal(t, n == c.after, p.Due(&q), "%d queued", n)
			}
			q.Drop(1)
			require.Equal(t, c.scheme&scheduler.Defer == 0, p.Due(&q))
		})
	}
}

// TestDrop forgets the first of a queue. What is left stays as it is, and a record that is
// used again is empty.
func TestDrop(t *testing.T) {
	var q scheduler.Queue
	word := new(byte)
	for i := range 10 {
		o := q.Add(aggregate.Put, i)
		o.Offset, o.Origin, o.Result, o.Value = uint64(i), word, word, [4]uint64{1, 2, 3, 4}
	}
	rest := append([]scheduler.Operation(nil), q.Operations[4:]...)
	q.Drop(4)
	require.Equal(t, rest, q.Operations)
	q.Drop(0)
	require.Equal(t, rest, q.Operations)
	for range 4 {
		require.Equal(t, scheduler.Operation{Kind: aggregate.Get, Bytes: 7}, *q.Add(aggregate.Get, 7))
	}
	q.Drop(len(q.Operations))
	require.Empty(t, q.Operations)
	require.Equal(t, make([]scheduler.Operation, 10), q.Operations[:10])
}

func TestReads(t *testing.T) {
	for kind, reads := range map[aggregate.Kind]bool{
		aggregate.Put: false, aggregate.Get: true, aggregate.Accumulate: false, aggregate.Fetch: true, aggregate.Swap: true, aggregate.Notify: false,
	} {
		require.Equal(t, reads, (&scheduler.Operation{Kind: kind}).Reads(), "kind %d", kind)
	}
}
