package completion_test

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/completion"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/verbs"
)

func newQueue(t testing.TB, capacity int) *completion.Queue {
	t.Helper()
	q, err := completion.New(capacity)
	require.NoError(t, err)
	return q
}

// all takes all waiting completions.
func all(q *completion.Queue) (taken []verbs.Completion) {
	var into [7]verbs.Completion
	for {
		n := q.Take(into[:])
		if n == 0 {
			return taken
		}
		taken = append(taken, into[:n]...)
	}
}

func TestCapacities(t *testing.T) {
	for capacity, holds := range map[int]int{0: 1, 1: 1, 2: 2, 65: 65} {
		q := newQueue(t, capacity)
		for i := range holds {
			require.True(t, q.Push(&verbs.Completion{}), "push %d with capacity %d", i, capacity)
		}
		require.False(t, q.Push(&verbs.Completion{}), "capacity %d", capacity)
	}
	for _, capacity := range []int{-1, completion.MaxCapacity + 1} {
		_, err := completion.New(capacity)
		require.ErrorContains(t, err, "allowed are 0 to 1073741824")
	}
}

// If a queue has no room, each queue pair gets one final completion that reports the failure. It comes after the
// completions that had room.
func TestLastWords(t *testing.T) {
	q := newQueue(t, 3)
	for i, c := range []struct {
		verbs.Completion
		room bool
	}{
		{verbs.Completion{QueuePair: 1, ID: 10}, true},
		{verbs.Completion{QueuePair: 2, ID: 20}, true},
		{verbs.Completion{QueuePair: 1, ID: 11}, true},
		{verbs.Completion{QueuePair: 1, ID: 12}, false},
		{verbs.Completion{QueuePair: 1, ID: 13, Status: verbs.StatusFlushed}, false},
		{verbs.Completion{QueuePair: 2, ID: 21, Status: verbs.StatusRemoteAccess}, false},
		{verbs.Completion{QueuePair: 2, ID: 22, Status: verbs.StatusFlushed}, false},
	} {
		require.Equal(t, c.room, q.Push(&c.Completion), "push %d", i)
	}
	require.Equal(t, []verbs.Completion{
		{QueuePair: 1, ID: 10}, {QueuePair: 2, ID: 20}, {QueuePair: 1, ID: 11},
		{QueuePair: 1, ID: 12, Status: verbs.StatusFlushed}, {QueuePair: 2, ID: 21, Status: verbs.StatusRemoteAccess},
	}, all(q))
	require.False(t, q.Push(&verbs.Completion{QueuePair: 3, ID: 30}), "there is no room again")
	require.Equal(t, []verbs.Completion{{QueuePair: 3, ID: 30, Status: verbs.StatusFlushed}}, all(q))
}

// model is a queue without a ring.
type model struct {
	capacity int
	waiting  []verbs.Completion
	overflow bool
	silent   []uint32
}

func (m *model) push(c verbs.Completion) bool {
	if !m.overflow && len(m.waiting) < m.capacity {
		m.waiting = append(m.waiting, c)
		return true
	}
	m.overflow = true
	for _, number := range m.silent {
		if number == c.QueuePair {
			return false
		}
	}
	m.silent = append(m.silent, c.QueuePair)
	if c.Status == verbs.StatusSuccess {
		c.Status = verbs.StatusFlushed
	}
	m.waiting = append(m.waiting, c)
	return false
}

func (m *model) detach(number uint32) {
	var waiting []verbs.Completion
	for _, c := range m.waiting {
		if c.QueuePair != number {
			waiting = append(waiting, c)
		}
	}
	m.waiting = waiting
	var silent []uint32
	for _, n := range m.silent {
		if n != number {
			silent = append(silent, n)
		}
	}
	m.silent = silent
}

// A queue and its model do the same in random programs. The queue begins anywhere in its ring, grows, and runs out of
// room.
func TestLikeModel(t *testing.T) {
	for seed := range testsize.Samples(t, 300) {
		random := rand.New(rand.NewPCG(seed, 1))
		// Programs differ in how often they push and take, so that some queues fill and some stay empty. Every third
		// program begins with more pushes than its queue has room for.
		capacity, pushes, first := 1+random.IntN(400), 1+random.IntN(9), 0
		if seed%3 == 0 {
			capacity = 1 + random.IntN(50)
			first = capacity + 1
		}
		q, m := newQueue(t, capacity), &model{capacity: capacity}
		var id uint64
		for step := range 1000 {
			number := uint32(1 + random.IntN(4))
			switch kind := random.IntN(12); {
			case step < first || kind < pushes:
				id++
				c := verbs.Completion{ID: id, QueuePair: number, Status: verbs.Status(random.IntN(2)), Bytes: uint32(id)}
				require.Equal(t, m.push(c), q.Push(&c), "seed %d", seed)
			case kind < 11 || random.IntN(20) > 0:
				into := make([]verbs.Completion, random.IntN(6))
				n := q.Take(into)
				require.Equal(t, min(len(into), len(m.waiting)), n, "seed %d", seed)
				require.Equal(t, append([]verbs.Completion{}, m.waiting[:n]...), into[:n], "seed %d", seed)
				m.waiting = m.waiting[n:]
			default:
				require.True(t, completion.Attach(q, q))
				completion.Detach(q, q, number)
				m.detach(number)
			}
		}
		require.True(t, m.overflow || first == 0, "seed %d", seed)
		require.Equal(t, append([]verbs.Completion(nil), m.waiting...), all(q), "seed %d", seed)
	}
}

// A queue closes when the last queue pair is detached from it, for either direction. Then no queue pair can be
// attached.
func TestClose(t *testing.T) {
	sends, receives := newQueue(t, 1), newQueue(t, 1)
	require.True(t, completion.Attach(sends, receives))
	require.True(t, completion.Attach(sends, sends))
	for q, uses := range map[*completion.Queue]string{sends: "3 uses", receives: "1 uses"} {
		open, err := q.Close()
		require.ErrorContains(t, err, uses)
		require.True(t, open)
	}
	completion.Detach(sends, receives, 1)
	open, err := receives.Close()
	require.NoError(t, err)
	require.True(t, open)
	open, err = receives.Close()
	require.NoError(t, err, "a second Close")
	require.False(t, open)

	require.False(t, completion.Attach(sends, receives))
	require.False(t, completion.Attach(receives, sends))
	_, err = sends.Close()
	require.ErrorContains(t, err, "2 uses", "those who were refused use nothing")
	completion.Detach(sends, sends, 2)
	open, err = sends.Close()
	require.NoError(t, err)
	require.True(t, open)
}

// Nothing is lost if several goroutines push. A single reader takes the completions of each in order.
func TestGoroutines(t *testing.T) {
	const pushers, each = 3, 2000
	q := newQueue(t, pushers*each)
	var group sync.WaitGroup
	for number := range uint32(pushers) {
		group.Go(func() {
			for id := range uint64(each) {
				q.Push(&verbs.Completion{QueuePair: number, ID: id})
			}
		})
	}
	var next [pushers]uint64
	into := make([]verbs.Completion, 10)
	for got := 0; got < pushers*each; {
		n := q.Take(into)
		for _, c := range into[:n] {
			require.Equal(t, next[c.QueuePair], c.ID)
			next[c.QueuePair]++
		}
		if got += n; n == 0 {
			runtime.Gosched()
		}
	}
	group.Wait()
	require.Zero(t, q.Take(into))
}

func TestAllocatesNothing(t *testing.T) {
	q := newQueue(t, 1024)
	into := make([]verbs.Completion, 10)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		for id := range uint64(25) {
			q.Push(&verbs.Completion{ID: id})
		}
		for q.Take(into) > 0 {
		}
	}))
}

func BenchmarkTakeOfNone(b *testing.B) {
	q := newQueue(b, 1024)
	into := make([]verbs.Completion, 16)
	b.ReportAllocs()
	for b.Loop() {
		q.Take(into)
	}
}

func BenchmarkPushAndTake(b *testing.B) {
	q := newQueue(b, 1024)
	into := make([]verbs.Completion, 16)
	b.ReportAllocs()
	for b.Loop() {
		q.Push(&verbs.Completion{ID: 1})
		q.Take(into)
	}
}
