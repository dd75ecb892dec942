package job

import (
	"errors"
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

// A closingCard is closed by Close of its World before it registers memory.
type closingCard struct {
	verbs.Device
	world *World
}

func (c closingCard) RegisterMemory([]byte, verbs.Access) (verbs.MemoryRegion, error) {
	c.world.closed.Store(true)
	return nil, fmt.Errorf("registering memory: %w", verbs.ErrClosed)
}

// A Register during which the World is closed says that, and not that a card is.
func TestRegisterDuringClose(t *testing.T) {
	w := quiet(t)[0]
	device := w.home.device
	w.home.device = closingCard{device, w}
	_, err := RegisterElements(w, []int{1})
	w.home.device = device
	require.EqualError(t, err, "world: Register: the World is closed")
	require.ErrorIs(t, err, ErrClosed)
}

// A failingRegion cannot be deregistered.
type failingRegion struct {
	verbs.MemoryRegion
	err error
}

func (r failingRegion) Deregister() error { return r.err }

// A registration that Close has ended on one card has no error of that, but one of another card.
func TestEndOfRegistration(t *testing.T) {
	failed, ended := errors.New("failed"), fmt.Errorf("region: %w", verbs.ErrClosed)
	r := &Region{regions: [cardKinds]verbs.MemoryRegion{sharedCard: failingRegion{err: ended}, networkCard: failingRegion{err: failed}}}
	err := r.endRegistration()
	require.ErrorIs(t, err, failed)
	require.NotErrorIs(t, err, verbs.ErrClosed)
	require.ErrorIs(t, r.Deregister(), verbs.ErrClosed)
	r.regions[networkCard] = failingRegion{err: ended}
	require.NoError(t, r.endRegistration())
}
