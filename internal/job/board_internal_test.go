package job

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a root has on its board is read once by all, also by those that are slow, whatever calls lie between two
// broadcasts: so many that numbers wrap.
func TestBoard(t *testing.T) {
	const n, far = 5, 3 * boardSlots
	// Boards are for ranks that are more than the cores.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	require.NoError(t, Run(t.Context(), n, func(ctx context.Context, w *World) error {
		require.True(t, w.onBoard(8))
		require.False(t, w.onBoard(mostOnBoard+1))
		for turn, calls := range []uint32{0, refreshed - 1, 2*refreshed - 1, 2*refreshed + 5, 3*refreshed - 1, 1<<32 - 9} {
			if calls != 0 {
				jump(w, calls)
				require.NoError(t, w.Barrier(ctx))
			}
			if turn == 1 || turn == 2 {
				// Nothing is broadcast for half of all numbers.
				continue
			}
			for i := range far {
				if w.rank == turn%n {
					for range 100 * (i % 3) {
						runtime.Gosched()
					}
				}
				data := []int{-1, -1}
				root := i / boardSlots % n
				if w.rank == root {
					data = []int{turn, i}
				}
				require.NoError(t, Broadcast(ctx, w, root, data))
				require.Equal(t, []int{turn, i}, data)
			}
		}
		return nil
	}, func(s *Settings) { s.cores = 2 }))
}

// jump has a rank go on as if it had made so many calls, the last of which were barriers: its ledger has none that
// is older than that, which would look new half of all numbers later.
func jump(w *World, calls uint32) {
	for back := range uint32(ledgerDepth) {
		number := calls - back
		w.ledger.records[number%ledgerDepth].store(&signature{call: callBarrier, number: number})
	}
	w.calls.Store(calls)
}
