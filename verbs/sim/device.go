package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/onesided/rma/internal/bounds"
	"github.com/onesided/rma/internal/cpucopy"
	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/verbs"
)

// A Device is the card of one rank.
type Device struct {
	// The fields that each event needs come first, in as few cache lines as possible.
	sim *Simulator
	// out and in are the two directions of the link.
	out  output
	in   input
	lane uint32
	// dead: it was killed, and so it is closed too.
	closed, dead bool
	// channel is the event channel of the rank. OpenRail shares it with another device.
	channel *eventChannel
	regions regions
	rank    int
	// flows wait for their turn at the output.
	flows ring[flow]
	// waiting are the pieces that have arrived and wait in the network until the input is free, in order. Only then do
	// they request the bus, which the other direction may use meanwhile.
	waiting ring[event]
	address string
	// first is the rank's first device, with which all of them die. It is this device, unless a task of a rank has
	// opened this one.
	first *Device
	// memory has the lengths of the memory of AllocateMemory, by its first byte.
	memory    map[*byte]int
	allocated int

	pairs      []*queuePair
	lastNumber uint32
	requests   []verbs.ConnectionRequest
	watches    []*watch
	queues     []*completionQueue

	// faultsOut and faultsIn are the faults of the two directions of the link.
	faultsOut, faultsIn linkFaults
	// held is what has arrived and waits for the end of a fault, in order. releasing: the first of it is being let in.
	held      ring[held]
	releasing bool
	// slow and refusals are the times at which the processor is slow, and at which memory is rejected.
	slow, refusals []period
	// starving is how many of the next messages find no receive, exhausting how many of their senders then give up.
	starving, exhausting int
}

var (
	_ verbs.Device  = (*Device)(nil)
	_ verbs.Watcher = (*Device)(nil)
	_ verbs.Meter   = (*Device)(nil)
	_ verbs.Charger = (*Device)(nil)

	_ verbs.RingPoller = (*Device)(nil)
)

const (
	maxSegments = 16
	maxMessage  = 1 << 30
	maxDepth    = 1 << 20
	depth       = 128
	// nodeMemory is the maximum total of AllocateMemory of one device.
	nodeMemory = 64 << 30
	// hugeBytes is the size of a huge page.
	hugeBytes = 2 << 20
	// addressSpace is the size of the address space for the regions of one device.
	addressSpace = 1 << 40
)

// Open opens the device of another rank. Ranks are numbered from 0. A device that a task of a rank opens (see
// [Device.Go]) has a number too, but belongs to that rank and dies with it.
func (s *Simulator) Open() *Device {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.openDevice()
}

// OpenRail opens another card of the device's rank. It has a link and a bus of its own, the channel of the device, and
// the processor of the caller. Like a device that a task of the rank opens, it has a number and dies with the rank.
func (d *Device) OpenRail() *Device {
	d.sim.mu.Lock()
	defer d.sim.mu.Unlock()
	rail := d.sim.openDevice()
	rail.channel, rail.first = d.channel, d.first
	return rail
}

// openDevice makes a device with a channel of its own.
func (s *Simulator) openDevice() *Device {
	d := &Device{
		sim: s, rank: len(s.devices), address: s.address(len(s.devices)), lane: s.lane(),
		memory: make(map[*byte]int),
	}
	d.channel = &eventChannel{device: d}
	d.first = d
	if s.current != nil && s.current.device != nil {
		d.first = s.current.device.first
	}
	if s.dying() {
		d.closed, d.dead = true, true
		return d
	}
	d.regions.next = uint64(d.rank+1) * addressSpace
	s.devices = append(s.devices, d)
	d.inheritFaults()
	s.open[d.address] = d
	return d
}

// Attributes returns the attributes of the device.
func (d *Device) Attributes() verbs.Attributes { return d.sim.attributes }

// Costs returns the costs of the profile.
func (d *Device) Costs() verbs.Costs { return d.sim.profile.costs() }

// Channel returns the event channel of the rank.
func (d *Device) Channel() verbs.CompletionChannel { return d.channel }

// Address returns the address of the device.
func (d *Device) Address() string { return d.address }

// Rank returns the device's number in the order of Open.
func (d *Device) Rank() int { return d.rank }

// Now returns the clock of the calling task.
func (d *Device) Now() time.Duration {
	d.sim.mu.Lock()
	defer d.sim.mu.Unlock()
	return *d.sim.local()
}

// Compute makes the calling task use its processor for a time.
func (d *Device) Compute(took time.Duration) {
	d.sim.mu.Lock()
	defer d.sim.mu.Unlock()
	d.charge(Computed, max(took, 0), 0)
}

// PollRings charges the calling task for polling n rings in its memory. The memory is then as of the task's time.
func (d *Device) PollRings(n int) {
	d.sim.mu.Lock()
	defer d.sim.mu.Unlock()
	if d.sim.look() && !d.dead {
		d.charge(Polled, time.Duration(max(n, 0))*d.sim.profile.PollRing, 0)
	}
}

// Copy copies with the CPU, and charges the calling task.
func (d *Device) Copy(dst, src []byte) int {
	n := cpucopy.Copy(dst, src)
	d.Copied(n)
	return n
}

// Frames returns the number of messages, requests and responses with data that have left the card.
func (d *Device) Frames() uint64 {
	d.sim.mu.Lock()
	defer d.sim.mu.Unlock()
	return d.out.frames
}

// AllocateMemory returns memory of the Go heap. That suits a simulated card: it does not move, its pages exist once
// they are used, and the collector keeps freed memory while it is still used.
func (d *Device) AllocateMemory(n int) ([]byte, error) {
	d.sim.mu.Lock()
	defer d.sim.mu.Unlock()
	switch {
	case d.unusable():
		return nil, d.closedError("AllocateMemory")
	case n <= 0:
		return nil, argumentError("AllocateMemory of %s; allowed is 1 or more", errtext.Count(n, "byte"))
	case n > nodeMemory-d.allocated:
		return nil, fmt.Errorf("sim: %s beside %d: %w: a rank has %d", errtext.Count(n, "byte"), d.allocated, verbs.ErrMemory, nodeMemory)
	}
	align := pageBytes
	if n >= hugeBytes {
		align = hugeBytes
	}
	memory := make([]byte, n+align)
	skip := int(-bounds.Address(memory) & uint64(align-1))
	memory = memory[skip : skip+n : skip+n]
	d.memory[&memory[0]] = n
	d.allocated += n
	return memory, nil
}

// FreeMemory frees memory.
func (d *Device) FreeMemory(memory []byte) error {
	d.sim.mu.Lock()
	defer d.sim.mu.Unlock()
	if d.unusable() {
		return d.closedError("FreeMemory")
	}
	if len(memory) > 0 {
		if n, ok := d.memory[&memory[0]]; ok {
			delete(d.memory, &memory[0])
			d.allocated -= n
			return nil
		}
	}
	return argumentError("FreeMemory: %s that AllocateMemory did not give, or FreeMemory has had", errtext.Count(len(memory), "byte"))
}

// RegisterMemory makes memory known to the device.
func (d *Device) RegisterMemory(memory []byte, access verbs.Access) (verbs.MemoryRegion, error) {
	d.sim.mu.Lock()
	defer d.sim.mu.Unlock()
	if d.unusable() {
		return nil, d.closedError("RegisterMemory")
	}
	if wrong := access.Check(); wrong != "" {
		return nil, argumentError("RegisterMemory: %s", wrong)
	}
	if at := *d.sim.local(); under(d.refusals, at) > 0 {
		return nil, fmt.Errorf("sim: RegisterMemory: %s at %v: %w: %w", errtext.Count(len(memory), "byte"), at, ErrFault, verbs.ErrMemory)
	}
	r := newRegion(d, memory, access)
	if err := d.regions.add(r); err != nil {
		return nil, err
	}
	p := &d.sim.profile
	d.charge(Registered, p.Register+p.RegisterPage*pages(len(memory)), len(memory))
	return r, nil
}

// Close closes the device.
func (d *Device) Close() error {
	d.sim.mu.Lock()
	defer d.sim.mu.Unlock()
	if d.unusable() {
		return nil
	}
	if d.sim.settle(); !d.sim.dying() {
		d.shut()
	}
	return nil
}

// shut closes the device now.
func (d *Device) shut() {
	if d.closed {
		return
	}
	d.closed = true
	delete(d.sim.open, d.address)
	for _, q := range slices.Clone(d.pairs) {
		q.destroy()
	}
	for _, r := range d.requests {
		r.(*connectionRequest).reject(d.sim.now, d.gone())
	}
	d.requests = nil
	for _, w := range d.watches {
		d.sim.schedule(d.sim.now+d.sim.profile.back(), w.by.lane, evDeath).what = w
	}
	d.watches = nil
	d.forget()
}

// forget drops the state of the device, and wakes its sleepers.
func (d *Device) forget() {
	d.regions.slots, d.regions.free = nil, nil
	d.memory, d.queues = nil, nil
	d.channel.wake()
}

// unusable reports whether the device is closed, or the calling task was killed.
func (d *Device) unusable() bool { return d.closed || d.sim.dying() }

// gone returns the error for peers of a closed device.
func (d *Device) gone() error {
	return fmt.Errorf("sim: %s: the device was closed: %w", d.address, verbs.ErrPeerGone)
}

func (d *Device) closedError(call string) error {
	return fmt.Errorf("sim: device %s: %s: %w", d.address, call, verbs.ErrClosed)
}

func argumentError(format string, args ...any) error {
	return &verbs.ArgumentError{Device: "sim", Text: fmt.Sprintf(format, args...)}
}

// A watch is one call of Watch.
type watch struct {
	by      *Device
	lost    func(cause error)
	cause   error
	stopped bool
}

// Watch reports the end of the device at address, in a task of its own while Run runs. For a rank that was killed it
// reports after Profile.Notice, for one that has lost power after Profile.Silence.
func (d *Device) Watch(address string, lost func(cause error)) (func(), error) {
	s := d.sim
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.unusable() {
		return nil, d.closedError("Watch")
	}
	w := &watch{by: d, lost: lost, cause: fmt.Errorf("sim: %s: the device was closed: %w", address, verbs.ErrPeerGone)}
	if of := s.open[address]; of != nil {
		of.watches = append(of.watches, w)
	} else {
		at := *s.local()
		if end, dead := s.dead[address]; dead {
			at, w.cause = max(at, end.noticed), end.cause
		}
		s.schedule(at, d.lane, evDeath).what = w
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.dying() {
			return
		}
		w.stopped = true
		if of := s.open[address]; of != nil {
			of.watches = slices.DeleteFunc(of.watches, func(other *watch) bool { return other == w })
		}
	}, nil
}

// notify calls lost, unless the watch or its device has ended.
func (w *watch) notify() {
	if w.stopped || w.by.closed {
		return
	}
	w.stopped = true
	if s := w.by.sim; s.running {
		s.begin(w.by, "the end of a peer of "+w.by.address, s.now, func() { w.lost(w.cause) })
		return
	}
	go w.lost(w.cause)
}

// errOverflow fails the queue pairs of a completion queue that had no room.
var errOverflow = fmt.Errorf("sim: completion queue overflow: %w", verbs.ErrQueueFull)
