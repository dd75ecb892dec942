//go:build ibverbs && cgo && linux

package ibv

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A completion answers for what was posted before it; what the card never had is flushed, and
// what it had and did not tell of is not.
func TestRing(t *testing.T) {
	r := newRing(5)
	require.Len(t, r.entries, 8)
	for round := range uint64(10) {
		var numbers []uint64
		for i := range uint64(5) {
			require.False(t, r.full())
			numbers = append(numbers, r.put(entry{id: 10*round + i}))
		}
		require.True(t, r.full())
		e, ok := r.finish(numbers[2] & r.mask)
		require.True(t, ok)
		require.Equal(t, 10*round+2, e.id)
		e, ok = r.finish(numbers[4] & r.mask)
		require.True(t, ok)
		require.Equal(t, 10*round+4, e.id)
		_, ok = r.finish(numbers[4] & r.mask)
		require.False(t, ok, "a place whose request has ended")
		require.False(t, r.full())
	}
	r.given.Store(r.put(entry{id: 1}) + 1)
	r.put(entry{id: 2})
	r.put(entry{id: 3})
	for _, id := range []uint64{2, 3} {
		e, ok := r.flush()
		require.True(t, ok)
		require.Equal(t, id, e.id)
	}
	_, ok := r.flush()
	require.False(t, ok)
	require.False(t, r.full())
}

// A queue is small at first, unless the card cannot make it larger.
func TestFirstRoom(t *testing.T) {
	for _, c := range []struct {
		limits         limits
		capacity, room int
	}{
		{limits{completions: 1 << 20}, 0, leastRoom},
		{limits{completions: 1 << 20}, 1000, 1000},
		{limits{completions: 1 << 20}, maxCapacity, mostRoom},
		{limits{completions: 100}, 1000, 100},
		{limits{completions: 1 << 20, queuesFixed: true}, 0, leastRoom},
		{limits{completions: 1 << 20, queuesFixed: true}, 8000, 9000},
		{limits{completions: 1 << 20, queuesFixed: true}, maxCapacity, 1 << 20},
	} {
		require.Equal(t, c.room, c.limits.firstRoom(c.capacity), "%+v", c)
	}
}

// What is left of a queue pair that is gone is not taken for another's.
func TestPairTable(t *testing.T) {
	var table pairTable
	first, second := new(queuePair), new(queuePair)
	require.NoError(t, table.add(first))
	require.NoError(t, table.add(second))
	require.NotEqual(t, first.slot, second.slot)
	require.Same(t, first, table.of(first.identity|5))
	require.Same(t, second, table.of(second.identity|receiveBit|markPlace))
	require.Nil(t, table.of(uint64(slots-1)<<placeBits))
	table.remove(first)
	require.Nil(t, table.of(first.identity))
	again := new(queuePair)
	require.NoError(t, table.add(again))
	require.Equal(t, first.slot, again.slot)
	require.Nil(t, table.of(first.identity|5))
	require.Same(t, again, table.of(again.identity))
	require.ElementsMatch(t, []*queuePair{second, again}, table.all())
}
