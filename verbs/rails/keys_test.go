package rails_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/simtest"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/rails"
	"github.com/onesided/rma/verbs/sim"
)

// A region that ends is forgotten by the peers that have requested its keys, and until then its key is given to
// no other; a queue pair that ends leaves nothing.
func TestForget(t *testing.T) {
	const size = 1 << 20
	s := simtest.New(t, "ndr-2024", 1)
	nodes := simulated(t, s, 0, 2, 2, size)
	near, far := nodes[0], nodes[1]
	turn := 0
	wait := func(n *node, mine int) { n.until(func() bool { n.queue.Poll(nil); return turn >= mine }) }
	next := func() {
		turn++
		for _, n := range nodes {
			n.Channel().Wake()
		}
	}
	s.Go("far", func() {
		far.accept()
		wait(far, 1)
		require.Equal(t, 1, rails.Advertised(far.pair))
		require.NoError(t, far.region.Deregister())
		require.Equal(t, 1, rails.Old(far.Device))
		far.until(func() bool { far.queue.Poll(nil); return rails.Old(far.Device) == 0 })
		// The same memory is another region.
		region, err := far.RegisterMemory(far.memory, all)
		require.NoError(t, err)
		far.region = region
		next()
		wait(far, 3)
		require.Equal(t, 1, rails.Advertised(far.pair))
		require.NoError(t, far.pair.Close())
		require.NoError(t, far.region.Deregister())
		require.Zero(t, rails.Old(far.Device), "the peers that requested are gone")
	})
	s.Go("near", func() {
		near.connect(far.Address())
		near.warm(far)
		require.Equal(t, 1, rails.Known(near.pair))
		next()
		wait(near, 2)
		require.Zero(t, rails.Known(near.pair))
		near.warm(far)
		require.Equal(t, 1, rails.Known(near.pair))
		next()
	})
	require.NoError(t, s.Run())
}

// An alikeRegion has a key of the test's.
type alikeRegion struct {
	verbs.MemoryRegion
	key  uint32
	gone *int
}

func (r alikeRegion) Remote() verbs.RemoteRegion {
	remote := r.MemoryRegion.Remote()
	remote.RKey = r.key
	return remote
}

func (r alikeRegion) Deregister() error {
	*r.gone++
	return r.MemoryRegion.Deregister()
}

// A key that a peer may remember as an old region's is not given to a new one.
func TestKeyOfOldRegion(t *testing.T) {
	s := simtest.New(t, "ndr-2024", 1)
	first := s.Open()
	var keys []uint32
	gone := 0
	device, err := rails.New(&registrar{first, func(r verbs.MemoryRegion) verbs.MemoryRegion {
		key := keys[0]
		keys = keys[1:]
		return alikeRegion{r, key, &gone}
	}}, first.OpenRail())
	require.NoError(t, err)
	keys = []uint32{7}
	region, err := device.RegisterMemory(make([]byte, 8), all)
	require.NoError(t, err)
	rails.Request(region)
	require.NoError(t, region.Deregister())
	require.Equal(t, 1, rails.Old(device))
	keys, gone = []uint32{7, 7, 9}, 0
	region, err = device.RegisterMemory(make([]byte, 8), all)
	require.NoError(t, err)
	require.Equal(t, uint32(9), region.Remote().RKey)
	require.Equal(t, 2, gone, "regions with the key of the old one")
}

// A registrar is a device whose regions are changed.
type registrar struct {
	*sim.Device
	change func(verbs.MemoryRegion) verbs.MemoryRegion
}

func (r *registrar) RegisterMemory(memory []byte, access verbs.Access) (verbs.MemoryRegion, error) {
	region, err := r.Device.RegisterMemory(memory, access)
	if err != nil {
		return nil, err
	}
	return r.change(region), nil
}
