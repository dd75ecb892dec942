package registration

import (
	"log/slog"

	"github.com/onesided/rma/regcache"
	"github.com/onesided/rma/scheduler/transfer"
	"github.com/onesided/rma/verbs"
)

// A Config has the parameters of a Registry.
type Config struct {
	// Protocols are the protocols to choose from. If it is empty, memory is copied in the simplest way.
	Protocols transfer.Set
	// Kept bounds the memory that stays registered while no request uses it.
	Kept regcache.Limits
	// EagerBytes is the length of an eager buffer. It must be positive.
	EagerBytes int
	// Virtual is set if time is virtual. Neither the addresses of buffers nor the times of collections make a difference then.
	Virtual bool
	// Log receives a warning when a device takes no more memory. It must be set.
	Log *slog.Logger
}

// A Registry is what one rank has registered with its devices. Its methods may be called from any goroutine.
type Registry struct {
	config  Config
	devices Devices
	cards   [Kinds]*Card
	known   known
	eager   Pool
}

// New returns a Registry that has registered nothing.
func New(devices Devices, config Config) *Registry {
	r := &Registry{config: config, devices: devices, eager: Pool{devices: devices, length: config.EagerBytes}}
	for kind, device := range devices {
		if device != nil {
			r.cards[kind] = newCard(r, Kind(kind), device)
		}
	}
	return r
}

// Register registers memory with every device. Requests whose memory is in the Region, and that the program may write
// ([verbs.LocalWrite]), use its keys until Deregister, which the caller calls after they have completed.
func (r *Registry) Register(memory []byte, access verbs.Access) (*Region, error) {
	region, err := r.devices.Register(memory, access)
	if err == nil {
		region.known = &r.known
		r.known.add(region)
	}
	return region, err
}

// Devices returns the rank's devices, to register memory of the library, which no look-up is to find.
func (r *Registry) Devices() Devices { return r.devices }

// Card returns the rank's card of a kind, or nil.
func (r *Registry) Card(kind Kind) *Card { return r.cards[kind] }

// Eager returns the pool of eager buffers, which all devices know.
func (r *Registry) Eager() *Pool { return &r.eager }

// Close forgets what is kept, before the devices are closed, which ends all regions. Holds may be released after it.
func (r *Registry) Close() {
	for _, c := range r.cards {
		if c == nil {
			continue
		}
		if kept := c.cache.Load(); kept != nil {
			kept.close()
		}
	}
}
