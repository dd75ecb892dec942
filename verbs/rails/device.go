package rails

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/verbs"
)

// maxRails bounds the rails of a device.
const maxRails = 8

// An Optimization is an optimization that [NewWithout] can switch off, to measure its effect.
type Optimization uint8

const (
	// Striping sends long requests over all rails. Without it everything goes over rail 0.
	Striping Optimization = 1 << iota

	allOptimizations = Striping
)

// device is several devices as one.
type device struct {
	rails      []verbs.Device
	attributes verbs.Attributes
	costs      verbs.Costs
	address    string
	channel    channel
	division   division
	servers    []verbs.Server
	closed     atomic.Bool
	// Rail 0 charges the caller's processor.
	verbs.Charger
	verbs.RingPoller

	// others are the queues of the rails after the first.
	others []*railQueue
	// onOthers counts the outstanding requests on the other rails. soon makes the next poll check all of them.
	// idlePolls counts the polls while none is outstanding.
	onOthers  atomic.Int64
	soon      atomic.Bool
	idlePolls atomic.Uint32

	// pairs are the open queue pairs, by index, with holes. The slice is replaced, never changed.
	pairs atomic.Pointer[[]*queuePair]

	// mu guards the fields below. It is taken after the mutex of a queue pair.
	mu      sync.RWMutex
	regions regions
	callers callers
}

// New makes one device of 2 to 8 devices. The new device owns them and closes them; the caller must not use them any
// more. If New returns an error, they stay the caller's.
func New(devices ...verbs.Device) (verbs.Device, error) { return NewWithout(0, devices...) }

// NewWithout is New without some optimizations.
func NewWithout(without Optimization, devices ...verbs.Device) (verbs.Device, error) {
	if without&^allOptimizations != 0 {
		return nil, argumentError("New: without is %#x, known are %#x", without, allOptimizations)
	}
	if n := len(devices); n < 2 || n > maxRails {
		return nil, argumentError("New of %s; allowed are 2 to %d", errtext.Count(n, "device"), maxRails)
	}
	d := &device{rails: devices, servers: make([]verbs.Server, len(devices)), Charger: verbs.ChargerOf(devices[0]), RingPoller: verbs.RingPollerOf(devices[0])}
	d.regions.init()
	d.pairs.Store(new([]*queuePair))
	for i, rail := range devices {
		d.servers[i], _ = rail.(verbs.Server)
	}
	if err := d.describe(without); err != nil {
		return nil, err
	}
	if err := d.channel.init(d); err != nil {
		return nil, err
	}
	for i := range devices[1:] {
		q, err := d.newOtherQueue(i + 1)
		if err != nil {
			return nil, err
		}
		d.others = append(d.others, q)
	}
	d.channel.open()
	return d.able(), nil
}

// describe computes the attributes of the device.
func (d *device) describe(without Optimization) error {
	a := d.rails[0].Attributes()
	d.costs = d.rails[0].Costs()
	names, addresses := []string{a.Name}, make([]string, len(d.rails))
	for i, rail := range d.rails {
		address := rail.Address()
		if strings.Contains(address, separator) {
			return argumentError("New: the address %q of rail %d has a %q in it", address, i, separator)
		}
		addresses[i] = address
		if i == 0 {
			continue
		}
		other, costs := rail.Attributes(), rail.Costs()
		if other.Virtual != a.Virtual {
			return argumentError("New: rail 0 and rail %d are not both in virtual time, or both in real time", i)
		}
		names = append(names, other.Name)
		a.MaxSegments, a.MaxMessage = min(a.MaxSegments, other.MaxSegments), min(a.MaxMessage, other.MaxMessage)
		a.Resends = a.Resends || other.Resends
		if other.ReservedLKey == 0 {
			a.ReservedLKey = 0
		}
		d.costs.Register += costs.Register
		d.costs.RegisterPage += costs.RegisterPage
		d.costs.Deregister += costs.Deregister
		d.costs.DeregisterPage += costs.DeregisterPage
	}
	a.Name = strings.Join(names, "+")
	d.attributes = a
	d.address = prefix + strings.Join(addresses, separator)
	if len(d.address) > maxAddress {
		return argumentError("New: the addresses of %s take %s together; allowed are %d", errtext.Count(len(d.rails), "rail"), errtext.Count(len(d.address), "byte"), maxAddress)
	}
	d.division = divide(d.rails, without)
	if d.division.least >= 0 {
		d.attributes.OrderedWrites = false
		d.costs.Bandwidth, d.costs.DuplexBandwidth = d.division.bandwidth, d.division.duplex
	}
	return nil
}

// able returns the device with the rails' optional interfaces that change how a program uses it.
func (d *device) able() verbs.Device {
	watcher, watches := d.rails[0].(verbs.Watcher)
	if watches {
		watcher = railWatcher{watcher}
	}
	serves := false
	for _, s := range d.servers {
		serves = serves || s != nil
	}
	switch {
	case watches && serves:
		return struct {
			*device
			verbs.Watcher
			server
		}{d, watcher, server{d}}
	case watches:
		return struct {
			*device
			verbs.Watcher
		}{d, watcher}
	case serves:
		return struct {
			*device
			server
		}{d, server{d}}
	}
	return d
}

// A railWatcher watches rail 0 of a peer.
type railWatcher struct{ verbs.Watcher }

// Watch watches the device of the peer's rail 0.
func (w railWatcher) Watch(address string, lost func(cause error)) (stop func(), err error) {
	addresses, err := parseAddress(address)
	if err != nil {
		return nil, err
	}
	return w.Watcher.Watch(addresses[0], lost)
}

// A server is the device as a verbs.Server.
type server struct{ d *device }

// Activity returns the sum over the rails.
func (s server) Activity() (activity uint64) {
	for _, rail := range s.d.servers {
		if rail != nil {
			activity += rail.Activity()
		}
	}
	return activity
}

// Served returns the sum over the rails.
func (s server) Served() (served uint64) {
	for _, rail := range s.d.servers {
		if rail != nil {
			served += rail.Served()
		}
	}
	return served
}

// Pending reports whether something waits for room on a rail.
func (s server) Pending() bool {
	return slices.ContainsFunc(s.d.servers, func(rail verbs.Server) bool { return rail != nil && rail.Pending() })
}

// Frames returns the sum over the rails that count frames.
func (d *device) Frames() (frames uint64) {
	for _, rail := range d.rails {
		if meter, ok := rail.(verbs.Meter); ok {
			frames += meter.Frames()
		}
	}
	return frames
}

// Attributes returns the attributes of the device.
func (d *device) Attributes() verbs.Attributes { return d.attributes }

// Costs returns the costs of rail 0 with the bandwidth of all rails.
func (d *device) Costs() verbs.Costs { return d.costs }

// Now returns the clock of rail 0.
func (d *device) Now() time.Duration { return d.rails[0].Now() }

// Copy copies as rail 0 does.
func (d *device) Copy(dst, src []byte) int { return d.rails[0].Copy(dst, src) }

// AllocateMemory returns memory of rail 0.
func (d *device) AllocateMemory(n int) ([]byte, error) { return d.rails[0].AllocateMemory(n) }

// ReserveMemory returns memory of rail 0 that is not backed yet.
func (d *device) ReserveMemory(n int) ([]byte, error) {
	return verbs.ReserverOf(d.rails[0]).ReserveMemory(n)
}

// BackMemory backs memory of ReserveMemory.
func (d *device) BackMemory(ctx context.Context, memory []byte) (int, error) {
	return verbs.ReserverOf(d.rails[0]).BackMemory(ctx, memory)
}

// FreeMemory frees memory of rail 0.
func (d *device) FreeMemory(memory []byte) error { return d.rails[0].FreeMemory(memory) }

// Channel returns the event channel of the rank.
func (d *device) Channel() verbs.CompletionChannel { return &d.channel }

// Address returns the addresses of all rails as one.
func (d *device) Address() string { return d.address }

// Close closes the rails.
func (d *device) Close() error {
	if d.closed.Swap(true) {
		return nil
	}
	var errs []error
	for i, rail := range d.rails {
		if err := rail.Close(); err != nil {
			errs = append(errs, of(i, err))
		}
	}
	d.channel.close()
	return errors.Join(errs...)
}

const (
	prefix    = "rails|"
	separator = "|"
	// maxAddress is the limit of verbs.Device.
	maxAddress = 256
)

// parseAddress returns the addresses of the rails.
func parseAddress(address string) ([]string, error) {
	list, ok := strings.CutPrefix(address, prefix)
	addresses := strings.Split(list, separator)
	if !ok || len(address) > maxAddress || len(addresses) < 2 || len(addresses) > maxRails {
		return nil, argumentError("the address %q; an address of rails is %q and those of 2 to %d rails with %q between them, of %d bytes at most", shorten(address), prefix, maxRails, separator, maxAddress)
	}
	return addresses, nil
}

func shorten(text string) string {
	if len(text) > maxAddress {
		return fmt.Sprintf("%s and %s more", text[:maxAddress], errtext.Count(len(text)-maxAddress, "byte"))
	}
	return text
}
