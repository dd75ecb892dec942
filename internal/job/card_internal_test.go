package job

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/shm"
	"github.com/onesided/rma/verbs/tcp"
)

// What a rank of the largest job takes for its queues is that of a small one, until it
// hears from the others.
func TestQueueOfLargeJob(t *testing.T) {
	network, err := tcp.Open(tcp.Options{Listen: "127.0.0.1:0"})
	require.NoError(t, err)
	shared, err := shm.NewFabric().Open()
	require.NoError(t, err)
	for kind, device := range map[cardKind]verbs.Device{networkCard: network, sharedCard: shared} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range 16 {
			c, err := newCard(kind, device, MaxRanks)
			require.NoError(t, err)
			require.NoError(t, c.queue.Close())
		}
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16<<20), "bytes for 16 cards of %v", kind)
		require.NoError(t, device.Close())
	}
}
