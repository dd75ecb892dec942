package registration_test

import (
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/bounds"
	"github.com/onesided/rma/internal/object"
	"github.com/onesided/rma/internal/registration"
	"github.com/onesided/rma/regcache"
	"github.com/onesided/rma/scheduler/transfer"
	"github.com/onesided/rma/verbs"
)

// A device knows only memory that is registered with it. It moves nothing: a test reports each use of a key. The embedded Device is
// nil, so that a call of anything else panics.
type device struct {
	verbs.Device
	t        testing.TB
	reserved uint32
	// refuse returns why the device refuses a registration, if it is not nil.
	refuse func(bytes int, access verbs.Access) error
	// happened is called for each registration and deregistration, if it is not nil.
	happened func(event string)

	mu      sync.Mutex
	last    uint32
	regions map[uint32]*region
	// registered counts weak regions, deregistered those of them that have ended, and dead those whose memory was freed before.
	registered, deregistered, dead int
}

// A region is one that a device knows.
type region struct {
	device *device
	key    uint32
	access verbs.Access
	extent bounds.Extent
	// memory is nil if the region is weak. Then object is what it was registered over.
	memory []byte
	object object.Object
}

func newDevice(t testing.TB) *device { return &device{t: t, regions: make(map[uint32]*region)} }

func (d *device) Attributes() verbs.Attributes {
	return verbs.Attributes{Name: "fake", ReservedLKey: d.reserved}
}

func (d *device) Costs() verbs.Costs {
	return verbs.Costs{
		Post: 300, Gap: 100, Latency: 2000, ReadLatency: 4000, Bandwidth: 2e9, DuplexBandwidth: 4e9,
		CopyLatency: 20, CopyBandwidth: 5e9, Register: 20 * time.Microsecond, RegisterPage: 200, Deregister: 10 * time.Microsecond,
	}
}

func (d *device) RegisterMemory(memory []byte, access verbs.Access) (verbs.MemoryRegion, error) {
	assert.Empty(d.t, access.Check())
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.refuse != nil {
		if err := d.refuse(len(memory), access); err != nil {
			return nil, err
		}
	}
	d.last++
	r := &region{device: d, key: d.last, access: access, extent: bounds.Of(memory)}
	if access&verbs.Weak == 0 {
		r.memory = memory
	} else {
		assert.Equal(d.t, verbs.LocalWrite|verbs.Weak, access, "the rights of a region that keeps no memory alive")
		r.object, _ = object.Of(memory, func(int) {}, 0)
		assert.NotNil(d.t, r.object.Alive(), "memory that the collector never frees needs no weak region")
		d.registered++
	}
	d.regions[r.key] = r
	d.report("register", r)
	return r, nil
}

func (r *region) LKey() uint32 { return r.key }

func (r *region) Remote() verbs.RemoteRegion {
	return verbs.RemoteRegion{Address: r.extent.First, Length: r.extent.Length, RKey: r.key}
}

func (r *region) Memory() []byte { return r.memory }

func (r *region) Deregister() error {
	d := r.device
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.regions[r.key] != r {
		return fmt.Errorf("fake: region %d: %w", r.key, verbs.ErrClosed)
	}
	delete(d.regions, r.key)
	if r.access&verbs.Weak != 0 {
		d.deregistered++
		if r.object.Alive() == nil {
			d.dead++
		}
		r.object.Stop()
	}
	d.report("deregister", r)
	return nil
}

func (d *device) report(event string, r *region) {
	if d.happened == nil {
		return
	}
	rights := ""
	switch {
	case event != "register":
	case r.access&verbs.Weak != 0:
		rights = " to keep"
	case r.access&verbs.LocalWrite == 0:
		rights = " to read"
	}
	d.happened(fmt.Sprintf("%s %d bytes%s", event, r.extent.Length, rights))
}

// use reports what is wrong with a request that has memory by a key, if anything.
func (d *device) use(memory []byte, key uint32) error { return d.useOf(bounds.Of(memory), key) }

// useOf is use of memory that nothing here keeps alive.
func (d *device) useOf(memory bounds.Extent, key uint32) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.regions[key]
	switch {
	case r == nil:
		return fmt.Errorf("key %d of no region", key)
	case !bounds.Contains(r.extent.First, r.extent.Length, memory.First, memory.Length):
		return fmt.Errorf("key %d of a region without this memory", key)
	case r.access&verbs.Weak != 0 && r.object.Alive() == nil:
		return fmt.Errorf("key %d of a region whose memory was freed", key)
	}
	return nil
}

// weak returns the number of weak regions.
func (d *device) weak() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.registered - d.deregistered
}

// A mapper is a device whose memory peers map.
type mapper struct{ *device }

func (mapper) Neighbor(string) (verbs.Neighbor, error) { panic("nobody maps") }

const eagerBytes = 4 << 10

var plenty = regcache.Limits{Bytes: 1 << 30, Regions: 1 << 12}

// configOf returns the parameters of a Registry that may use these protocols, and keeps plenty.
func configOf(protocols transfer.Set) registration.Config {
	return registration.Config{Protocols: protocols, Kept: plenty, EagerBytes: eagerBytes, Log: slog.New(slog.DiscardHandler)}
}

// over returns a Registry whose only device is d, for the network.
func over(d verbs.Device, config registration.Config) *registration.Registry {
	return registration.New(registration.Devices{registration.Network: d}, config)
}

// cardOver returns the Card of a device, which may use these protocols.
func cardOver(d *device, protocols transfer.Set) *registration.Card {
	return over(d, configOf(protocols)).Card(registration.Network)
}

// whole returns the hold of a kept region with all of memory, which there must be.
func whole(t testing.TB, c *registration.Card, memory []byte) registration.Hold {
	t.Helper()
	plan := c.Plan(memory, true)
	hold, ok := plan.Whole()
	require.True(t, ok)
	return hold
}

// keep has memory be kept, by a card that may use transfer.Cache only.
func keep(t testing.TB, c *registration.Card, memory []byte) {
	t.Helper()
	c.Use(memory)
	for plan := c.Plan(memory, true); plan.More(); {
		piece := plan.Next()
		require.False(t, piece.Copied)
		piece.Hold.Release()
	}
}
