package registration_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/registration"
	"github.com/onesided/rma/scheduler/transfer"
	"github.com/onesided/rma/verbs"
)

// Memory has the key of the region that it is in, if the program may write there.
func TestKey(t *testing.T) {
	r := over(newDevice(t), configOf(0))
	c := r.Card(registration.Network)
	require.True(t, c.NeedsKeys())
	memory := make([]byte, 100)
	register := func(from, to int, access verbs.Access) *registration.Region {
		region, err := r.Register(memory[from:to], access)
		require.NoError(t, err)
		require.Equal(t, memory[from:to], region.Memory())
		return region
	}
	key := func(from, to int) uint32 { return c.Key(memory[from:to]) }
	require.Zero(t, key(0, 1))
	ours, err := r.Devices().Register(memory, verbs.LocalWrite)
	require.NoError(t, err)
	require.Zero(t, key(0, 1), "no look-up finds memory of the library")
	require.NoError(t, ours.Deregister())
	middle, all := register(40, 60, verbs.LocalWrite), register(0, 100, verbs.LocalWrite)
	read := register(50, 55, 0)

	inMiddle, inAll := middle.Key(registration.Network), all.Key(registration.Network)
	require.NotEqual(t, inMiddle, inAll)
	require.Equal(t, inMiddle, key(50, 55), "what may not be written is passed over")
	require.Equal(t, inMiddle, key(40, 60))
	require.Equal(t, inAll, key(0, 40))
	require.Equal(t, inAll, key(39, 50), "one that has only a part is passed over")
	require.Equal(t, inAll, key(60, 100))
	require.NoError(t, all.Deregister())
	require.Zero(t, key(39, 50))
	require.Equal(t, inMiddle, key(40, 60))
	require.ErrorIs(t, all.Deregister(), verbs.ErrClosed)
	require.NoError(t, errors.Join(middle.Deregister(), read.Deregister()))
	require.Zero(t, key(50, 55))

	// A device with a reserved key knows all memory.
	device := newDevice(t)
	device.reserved = 7
	c = cardOver(device, transfer.All)
	require.False(t, c.NeedsKeys())
	require.EqualValues(t, 7, c.Key(memory))
	require.Zero(t, c.Excess(1000))
}

// What the device does not know takes longer.
func TestExcess(t *testing.T) {
	c := cardOver(newDevice(t), transfer.All)
	require.Positive(t, c.Excess(100))
	require.Greater(t, c.Excess(100_000), c.Excess(100))
}

// Each device has a region, with the rights that it has use for.
func TestDevices(t *testing.T) {
	shared, network := newDevice(t), newDevice(t)
	devices := registration.Devices{registration.Shared: mapper{shared}, registration.Network: network}
	memory := make([]byte, 100)
	const access = verbs.LocalWrite | verbs.RemoteRead | verbs.RemoteWrite
	region, err := devices.Register(memory, access|verbs.RemoteAtomic)
	require.NoError(t, err)
	require.Equal(t, access, shared.regions[1].access, "ranks that map memory need no atomics of the device")
	require.Equal(t, access|verbs.RemoteAtomic, network.regions[1].access)
	remote := region.Remote()
	require.Equal(t, shared.regions[1].Remote(), remote[registration.Shared])
	require.Equal(t, network.regions[1].Remote(), remote[registration.Network])
	require.NoError(t, region.Deregister())
	require.Empty(t, shared.regions)
	require.Empty(t, network.regions)

	// Ranks that do not map it get no access.
	region, err = devices.RegisterMapped(memory)
	require.NoError(t, err)
	require.Len(t, shared.regions, 1)
	require.Equal(t, access, shared.regions[2].access)
	require.Empty(t, network.regions)
	require.Zero(t, region.Remote()[registration.Network])
	require.NoError(t, region.Deregister())

	// Only its own device knows the stages of a card, but all know eager buffers.
	r := registration.New(devices, configOf(0))
	_, _, err = r.Card(registration.Network).CopyBuffer(100_000, false)
	require.NoError(t, err)
	require.Empty(t, shared.regions)
	require.Len(t, network.regions, 1)
	b, _, err := r.Eager().Take()
	require.NoError(t, err)
	require.NoError(t, shared.use(b.Memory, b.Key(registration.Shared)))
	require.NoError(t, network.use(b.Memory, b.Key(registration.Network)))
	clear(shared.regions)

	// If one device refuses, no other keeps its region.
	refused := errors.New("refused")
	network.refuse = func(int, verbs.Access) error { return refused }
	_, err = devices.Register(memory, access)
	require.ErrorIs(t, err, refused)
	require.Empty(t, shared.regions)
}

// A region that the end of one device has ended has no error of that, but one of another device.
func TestDeregisterRest(t *testing.T) {
	failed := errors.New("failed")
	for name, c := range map[string]struct {
		ends [registration.Kinds]error
		want error
	}{
		"ended":           {[...]error{fmt.Errorf("region: %w", verbs.ErrClosed), nil}, nil},
		"both ended":      {[...]error{verbs.ErrClosed, verbs.ErrClosed}, nil},
		"ended, and more": {[...]error{verbs.ErrClosed, failed}, failed},
		"failed":          {[...]error{nil, failed}, failed},
	} {
		t.Run(name, func(t *testing.T) {
			devices := registration.Devices{failing{newDevice(t), c.ends[0]}, failing{newDevice(t), c.ends[1]}}
			r, err := devices.Register(make([]byte, 10), 0)
			require.NoError(t, err)
			err = r.DeregisterRest()
			require.ErrorIs(t, err, c.want)
			require.NotErrorIs(t, err, verbs.ErrClosed)
			require.Equal(t, errors.Is(errors.Join(c.ends[:]...), verbs.ErrClosed), errors.Is(r.Deregister(), verbs.ErrClosed))
		})
	}
}

// failing has regions that end with an error.
type failing struct {
	*device
	err error
}

func (f failing) RegisterMemory([]byte, verbs.Access) (verbs.MemoryRegion, error) {
	return failingRegion{err: f.err}, nil
}

type failingRegion struct {
	verbs.MemoryRegion
	err error
}

func (r failingRegion) Deregister() error { return r.err }

// A pool makes as many buffers as are taken at once, in slabs, and uses them again.
func TestPool(t *testing.T) {
	for _, length := range []int{1 << 10, 4 << 10, 32 << 10, 100 << 10} {
		device := newDevice(t)
		config := configOf(0)
		config.EagerBytes = length
		pool := over(device, config).Eager()
		slab := 1
		if length <= 64<<10 {
			slab = max(64<<10/length, 8)
		}
		for range 3 {
			var taken []registration.Buffer
			for n := range 100 {
				b, scarce, err := pool.Take()
				require.NoError(t, err)
				require.Len(t, b.Memory, length)
				require.Equal(t, length, cap(b.Memory))
				require.NoError(t, device.use(b.Memory, b.Key(registration.Network)))
				require.Equal(t, n >= 32, scarce)
				for i := range taken {
					require.NotSame(t, &taken[i].Memory[0], &b.Memory[0])
				}
				taken = append(taken, b)
			}
			require.Len(t, device.regions, (100-1)/slab+1, "slabs of %d buffers of %d bytes", slab, length)
			for i := range taken {
				taken[i].Release()
			}
		}
	}
}

// Whatever a Pool's device refuses, the buffers that there are go on.
func TestPoolRefused(t *testing.T) {
	device := newDevice(t)
	config := configOf(0)
	config.EagerBytes = 32 << 10
	r := over(device, config)
	pool, waited := r.Eager(), func() (registration.Buffer, bool, error) { return r.Card(registration.Network).CopyBuffer(100, true) }
	refused := errors.New("refused")
	device.refuse = func(int, verbs.Access) error { return refused }
	_, _, err := pool.Take()
	require.ErrorIs(t, err, refused)
	_, _, err = waited()
	require.ErrorIs(t, err, refused)
	device.refuse = nil
	first, _, err := pool.Take()
	require.NoError(t, err)
	device.refuse = func(int, verbs.Access) error { return refused }
	for n := 1; n < 8; n++ {
		_, _, err := pool.Take()
		require.NoError(t, err)
	}
	_, _, err = pool.Take()
	require.ErrorIs(t, err, refused)
	// Callers that can wait get none even when one is free again, and ask the device once.
	memory := first.Memory
	first.Release()
	require.True(t, first.Memory == nil, "a buffer that was given back is used no more")
	asked := 0
	device.refuse = func(int, verbs.Access) error { asked++; return refused }
	for range 3 {
		b, scarce, err := waited()
		require.NoError(t, err)
		require.True(t, scarce)
		require.Nil(t, b.Memory)
	}
	require.Equal(t, 1, asked)
	b, _, err := pool.Take()
	require.NoError(t, err)
	require.Same(t, &memory[0], &b.Memory[0])
}

// A Plan hands out its use of a kept region once.
func TestWholeOnce(t *testing.T) {
	c := cardOver(newDevice(t), transfer.Of(transfer.Cache))
	memory := make([]byte, 10_000)
	keep(t, c, memory)
	plan := c.Plan(memory, true)
	hold, ok := plan.Whole()
	require.True(t, ok)
	_, ok = plan.Whole()
	require.False(t, ok)
	require.False(t, plan.More())
	hold.Release()
}

// Close forgets what is kept, and leaves the regions to the device.
func TestClose(t *testing.T) {
	device := newDevice(t)
	r := over(device, configOf(transfer.Of(transfer.Cache)))
	c := r.Card(registration.Network)
	require.Nil(t, r.Card(registration.Shared))
	memory := make([]byte, 10_000)
	keep(t, c, memory)
	require.Equal(t, 1, c.Transfers().Kept.Regions)
	r.Close()
	require.Zero(t, c.Transfers().Kept.Regions)
	require.Equal(t, 1, device.weak())
}
