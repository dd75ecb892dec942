package world

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/verbs/tcp"
)

// What a rank of the largest job takes for its queue over the network is that of a small
// one, until it hears from the others.
func TestQueueOfLargeJob(t *testing.T) {
	device, err := tcp.Open(tcp.Options{Listen: "127.0.0.1:0"})
	require.NoError(t, err)
	defer func() { require.NoError(t, device.Close()) }()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 16 {
		c, err := newCard(networkCard, device, MaxRanks)
		require.NoError(t, err)
		require.NoError(t, c.queue.Close())
	}
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16<<20), "bytes for 16 cards")
}
