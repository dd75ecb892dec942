package scheduler_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/aggregate"
	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/scheduler"
)

// TestDue adds operations until the queue is due; those of less than no bytes are of a run.
func TestDue(t *testing.T) {
	const never = 1 << 14
	words := 2 * aggregate.MostWords(packet)
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
		{"accumulates of a run, by their number", scheduler.All, aggregate.Accumulate, -8, words},
		{"accumulates of a run, not early", without(scheduler.Early), aggregate.Accumulate, -8, never},
		{"accumulates of a run, not deferred", without(scheduler.Defer), aggregate.Accumulate, -8, 1},
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
				if c.bytes > 0 {
					q.Add(c.kind, c.bytes)
				} else {
					q.Accumulate(reduce.Sum, reduce.Int64, -c.bytes, 0, 1)
				}
				require.Equal(t, n == c.after, p.Due(&q), "%d queued", n)
				if c.bytes < 0 {
					require.Equal(t, max(c.after-n, 1), p.Room(&q), "%d queued", n)
				}
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

// TestRuns adds accumulates of a word, some of them with others in between, and drops what a queue has
// piece by piece. The runs that are left are what was added, and nothing is added to one that has ended.
func TestRuns(t *testing.T) {
	for seed := range testsize.Samples(t, 300) {
		r := rand.New(rand.NewPCG(seed, 1))
		var q scheduler.Queue
		// want are the words of each of the Operations, nil of what is no run.
		var want [][]uint64
		ended, is, length := true, reduce.Sum, 0
		for range 200 {
			switch r.IntN(10) {
			case 0:
				q.Add(aggregate.Fetch, 8)
				want, ended = append(want, nil), true
				length++
			case 1:
				q.EndRun()
				ended = true
			case 2:
				n := r.IntN(len(q.Operations) + 1)
				for i := range n {
					length -= max(1, len(want[i])/2)
				}
				q.Drop(n)
				want = want[n:]
				ended = ended || len(want) == 0
			default:
				op, words := reduce.Op(r.IntN(2)), []uint64{r.Uint64(), r.Uint64()}
				if r.IntN(2) == 0 {
					q.Accumulate(op, reduce.Uint16, 2, words[0], words[1])
				} else {
					for range r.IntN(5) {
						words = append(words, r.Uint64(), r.Uint64())
					}
					require.Equal(t, len(words), copy(q.Accumulates(op, reduce.Uint16, 2, len(words)/2), words))
				}
				last := len(want) - 1
				if ended || op != is {
					want = append(want, words)
				} else {
					want[last] = append(want[last], words...)
				}
				ended, is = false, op
				length += len(words) / 2
			}
			if len(q.Operations) != len(want) || q.Len() != length {
				t.Fatalf("seed %d: %d operations, of length %d; must be %d, of %d", seed, len(q.Operations), q.Len(), len(want), length)
			}
			for i := range q.Operations {
				o := &q.Operations[i]
				if int(o.Run) != len(want[i])/2 || o.Run > 0 && (!slices.Equal(want[i], q.Run(o)) || o.Bytes != int(2*o.Run)) {
					t.Fatalf("seed %d, operation %d: %+v, must be a run of %v", seed, i, o, want[i])
				}
			}
		}
	}
}

func TestReads(t *testing.T) {
	for kind, reads := range map[aggregate.Kind]bool{
		aggregate.Put: false, aggregate.Get: true, aggregate.Accumulate: false, aggregate.Fetch: true, aggregate.Swap: true, aggregate.Notify: false,
	} {
		require.Equal(t, reads, (&scheduler.Operation{Kind: kind}).Reads(), "kind %d", kind)
	}
}
