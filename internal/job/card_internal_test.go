package job

import (
	"fmt"
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

// A closingCard is closed by Close of its World before it registers memory, if it has one.
type closingCard struct {
	verbs.Device
	world **World
}

func (c closingCard) RegisterMemory(memory []byte, access verbs.Access) (verbs.MemoryRegion, error) {
	if *c.world == nil {
		return c.Device.RegisterMemory(memory, access)
	}
	(*c.world).closed.Store(true)
	return nil, fmt.Errorf("registering memory: %w", verbs.ErrClosed)
}

// A Register during which the World is closed says that, and not that a card is.
func TestRegisterDuringClose(t *testing.T) {
	var closing *World
	w := quiet(t, over(func(_ int, d verbs.Device) verbs.Device { return closingCard{d, &closing} })...)[0]
	closing = w
	_, err := RegisterElements(w, []int{1})
	require.EqualError(t, err, "world: Register: the World is closed")
	require.ErrorIs(t, err, ErrClosed)
}
