package shm

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/onesided/rma/internal/cpucopy"
	"github.com/onesided/rma/verbs"
)

// Options are the options of Open.
type Options struct {
	// Ranks is the number of processes of this machine that will map each other's segments. It bounds the address space
	// of each segment. If the address space is limited (RLIMIT_AS), Open fails unless that many segments fit. Zero
	// means 64.
	Ranks int
	// SmallPages puts memory on pages of 4 KiB. Without it, memory of 2 MiB and more is on pages of 2 MiB if the system
	// has some. It is for measurements.
	SmallPages bool
	// HandshakeLimit bounds the time in which a process must hand over its segment, and in which a process that
	// connects must prove the key. Zero means 10 s.
	HandshakeLimit time.Duration
	// Key is the secret that a process must prove before it is given this process's segment. All processes of a job
	// have the same key. Without a key every process of the user is given the segment.
	Key []byte
}

// A Device is a device of a [Fabric] or of [Open]. It implements [verbs.Device].
type Device struct{ *device }

var (
	_ verbs.Device   = (*Device)(nil)
	_ verbs.Mapper   = (*Device)(nil)
	_ verbs.Watcher  = (*Device)(nil)
	_ verbs.Reserver = (*Device)(nil)
)

// device is what both forms share. form is what they do not.
type device struct {
	form
	name    string
	address string
	channel waker
	opened  time.Time
	regions regionTable
	closed  atomic.Bool

	mu         sync.Mutex
	pairs      map[uint32]*queuePair
	lastNumber uint32
	// requests are the connection requests not yet polled.
	requests []verbs.ConnectionRequest
	// departed are rings of closed queue pairs that their peers may still access. They are checked in turn, next first.
	departed []departedRing
	next     int
	// silent: peers get no more responses.
	silent bool
}

// departedRing has no peer if no peer was asked for the connection yet.
type departedRing struct {
	ring    ring
	locator uint64
	peer    peer
}

// form is how ranks of a kind share memory.
type form interface {
	// reserve returns n zeroed bytes. back backs them with pages; see verbs.Reserver.
	reserve(n int) ([]byte, error)
	back(ctx context.Context, memory []byte) (int, error)
	free(memory []byte) error
	// publish makes a region known to peers under its key. retract ends that; it does nothing for an unknown region.
	publish(r *region) error
	retract(r *region)
	newRing() (ring, uint64, error)
	freeRing(r ring, locator uint64)
	// dial connects to the device at address, attaches it to q and passes it q's connection request. It may finish
	// later, and then reports an error by undialled.
	dial(q *queuePair, address string, hello []byte) error
	neighbor(address string) (peer, error)
	// watch makes w report the end of the device at address. It returns an ErrPeerGone if the device is already gone.
	// unwatch ends that.
	watch(address string, w *watch) error
	unwatch(address string, w *watch)
	close() error
}

// A waker is a CompletionChannel whose WakeIfSleeping costs one load if there is no sleeper.
type waker interface {
	verbs.CompletionChannel
	WakeIfSleeping()
}

// deviceName is the name of a device of a process, and the prefix of errors.
const deviceName = "shm"

var attributes = verbs.Attributes{
	Name: deviceName, MaxInline: maxInline, MaxSegments: maxSegments, MaxMessage: maxMessage,
	Spin: 50 * time.Microsecond, CoherentAtomics: true,
}

// Attributes returns the attributes of the device.
func (d *device) Attributes() verbs.Attributes {
	own := attributes
	own.Name = d.name
	return own
}

// Costs returns the costs of the device, which are measured once per process.
func (d *device) Costs() verbs.Costs { return measuredCosts() }

// Now returns the time since the device was opened.
func (d *device) Now() time.Duration { return time.Since(d.opened) }

// Copy copies with the CPU.
func (d *device) Copy(dst, src []byte) int { return cpucopy.Copy(dst, src) }

// Channel returns the event channel of the rank.
func (d *device) Channel() verbs.CompletionChannel { return d.channel }

// Address returns the address of the device.
func (d *device) Address() string { return d.address }

// AllocateMemory returns zeroed memory that peers can map.
func (d *device) AllocateMemory(n int) ([]byte, error) {
	if err := d.checkSize("AllocateMemory", n); err != nil {
		return nil, err
	}
	return d.allocate(n)
}

// ReserveMemory returns zeroed memory that peers can map and that is not backed yet.
func (d *device) ReserveMemory(n int) ([]byte, error) {
	if err := d.checkSize("ReserveMemory", n); err != nil {
		return nil, err
	}
	return d.reserve(n)
}

// checkSize checks the size of memory that a call requests.
func (d *device) checkSize(call string, n int) error {
	if d.closed.Load() {
		return d.closedError(call)
	}
	if n <= 0 {
		return argumentError("%s of %d bytes; allowed is 1 or more", call, n)
	}
	return nil
}

// BackMemory backs memory of ReserveMemory.
func (d *device) BackMemory(ctx context.Context, memory []byte) (int, error) {
	if d.closed.Load() {
		return 0, d.closedError("BackMemory")
	}
	return d.back(ctx, memory)
}

// allocate returns n zeroed bytes that are backed.
func (d *device) allocate(n int) ([]byte, error) {
	memory, err := d.reserve(n)
	if err != nil {
		return nil, err
	}
	if _, err := d.back(context.Background(), memory); err != nil {
		return nil, errors.Join(err, d.free(memory))
	}
	return memory, nil
}

// FreeMemory frees memory.
func (d *device) FreeMemory(memory []byte) error {
	if d.closed.Load() {
		return d.closedError("FreeMemory")
	}
	return d.free(memory)
}

// RegisterMemory makes memory known to the device.
func (d *device) RegisterMemory(memory []byte, access verbs.Access) (verbs.MemoryRegion, error) {
	if d.closed.Load() {
		return nil, d.closedError("RegisterMemory")
	}
	if wrong := access.Check(); wrong != "" {
		return nil, argumentError("RegisterMemory: %s", wrong)
	}
	r := newRegion(d, memory, access)
	if err := d.regions.add(r); err != nil {
		return nil, err
	}
	if err := d.publish(r); err != nil {
		d.regions.remove(r)
		return nil, err
	}
	return r, nil
}

// Connect starts a connection.
func (d *device) Connect(address string, hello []byte, config verbs.QueuePairConfig) (verbs.QueuePair, error) {
	if d.closed.Load() {
		return nil, d.closedError("Connect")
	}
	if len(hello) > verbs.MaxHello {
		return nil, argumentError("Connect: hello of %d bytes, at most %d are allowed", len(hello), verbs.MaxHello)
	}
	q, err := d.newPair(config)
	if err != nil {
		return nil, err
	}
	if err := d.dial(q, address, append([]byte(nil), hello...)); err != nil {
		d.undialled(q, err)
	}
	return q, nil
}

// undialled fails a queue pair whose connection request has not reached any peer, so that no other process will access
// its ring.
func (d *device) undialled(q *queuePair, err error) {
	q.mu.Lock()
	q.in.leave(leftByProducer)
	q.fail(err)
	q.drive()
	q.unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reclaim()
}

// PollConnections takes connection requests.
func (d *device) PollConnections(into []verbs.ConnectionRequest) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := copy(into, d.requests)
	rest := copy(d.requests, d.requests[n:])
	clear(d.requests[rest:])
	d.requests = d.requests[:rest]
	return n
}

// maxConnectionRequests bounds the connections that wait for PollConnections.
const (
	maxConnectionRequests = 1 << 16
	tooMany               = "too many connections wait to be accepted"
)

// ask queues a connection request of a peer.
func (d *device) ask(r verbs.ConnectionRequest) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed.Load() {
		return fmt.Errorf("shm: %s: %w", d.address, verbs.ErrPeerGone)
	}
	if len(d.requests) == maxConnectionRequests {
		return fmt.Errorf("%w: %s", verbs.ErrRejected, tooMany)
	}
	d.requests = append(d.requests, r)
	d.channel.Wake()
	return nil
}

// accept makes the accepting end of a connection. out is the ring of the other end, and from its device.
func (d *device) accept(config verbs.QueuePairConfig, from peer, out ring) (verbs.QueuePair, error) {
	q, err := d.newPair(config)
	if err != nil {
		return nil, err
	}
	if err := q.connectTo(from, out); err != nil {
		return nil, errors.Join(err, q.Close())
	}
	return q, nil
}

// connectTo connects the accepting end unless the other end has withdrawn.
func (q *queuePair) connectTo(from peer, out ring) error {
	q.mu.Lock()
	defer q.unlock()
	if q.closed {
		// The device is being closed, and from may have seen it closed.
		q.in.leave(leftByProducer)
		return q.device.closedError("Accept")
	}
	out.locator.Store(q.locator)
	if !out.response.CompareAndSwap(responseNone, responseAccepted) {
		q.in.leave(leftByProducer)
		out.leave(leftByProducer)
		return fmt.Errorf("shm: Accept: the peer has closed its queue pair: %w", verbs.ErrPeerGone)
	}
	q.peer, q.out = from, out
	q.state.Store(uint32(verbs.StateReady))
	from.Wake()
	return nil
}

// reject responds to a connection request with a reason, while the device is open. A peer that finds the device closed
// reuses the ring's memory.
func (d *device) reject(from peer, out ring, reason string) {
	if len(reason) > maxReason {
		reason = reason[:maxReason]
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.silent {
		return
	}
	out.write(0, []byte(reason))
	out.locator.Store(uint64(len(reason)))
	out.response.Store(responseRejected)
	out.leave(leftByProducer)
	from.Wake()
}

// respondsOnce ensures that a connection request gets one response.
type respondsOnce struct{ given atomic.Bool }

// accept calls it unless the request has a response. If it fails, the request counts as having none, except if the peer
// has gone.
func (r *respondsOnce) accept(it func() (verbs.QueuePair, error)) (verbs.QueuePair, error) {
	if r.given.Swap(true) {
		return nil, fmt.Errorf("shm: Accept of a connection request that already has a response: %w", verbs.ErrClosed)
	}
	q, err := it()
	if err != nil {
		r.given.Store(errors.Is(err, verbs.ErrPeerGone))
		return nil, err
	}
	return q, nil
}

// adopt assigns a queue pair its number.
func (d *device) adopt(q *queuePair) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed.Load() {
		return d.closedError("queue pair")
	}
	d.reclaim()
	for {
		d.lastNumber++
		if _, taken := d.pairs[d.lastNumber]; !taken && d.lastNumber != 0 {
			break
		}
	}
	q.number = d.lastNumber
	d.pairs[q.number] = q
	return nil
}

// abandon forgets a closed queue pair. peer is the peer that it was connected to, or nil.
func (d *device) abandon(q *queuePair, peer peer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.pairs, q.number)
	d.departed = append(d.departed, departedRing{q.in, q.locator, peer})
	d.reclaim()
}

// reclaimed is the number of rings that one reclaim checks, so that a peer that keeps many does not make every
// connection slow.
const reclaimed = 32

// reclaim frees rings that both sides have left, or whose peer has gone: such a peer accesses nothing any more.
func (d *device) reclaim() {
	for range min(reclaimed, len(d.departed)) {
		if d.next >= len(d.departed) {
			d.next = 0
		}
		p := d.departed[d.next]
		if p.ring.left.Load()&leftByBoth != leftByBoth && (p.peer == nil || p.peer.gone() == nil) {
			d.next++
			continue
		}
		d.freeRing(p.ring, p.locator)
		last := len(d.departed) - 1
		d.departed[d.next] = d.departed[last]
		d.departed[last] = departedRing{}
		d.departed = d.departed[:last]
	}
}

// Close closes the device.
func (d *device) Close() error {
	if d.closed.Swap(true) {
		return nil
	}
	d.mu.Lock()
	pairs := make([]*queuePair, 0, len(d.pairs))
	for _, q := range d.pairs {
		pairs = append(pairs, q)
	}
	requests := d.requests
	d.requests = nil
	d.mu.Unlock()
	for _, q := range pairs {
		_ = q.Close()
	}
	for _, r := range requests {
		r.Reject("the device was closed")
	}
	d.mu.Lock()
	d.silent = true
	d.mu.Unlock()
	d.regions.clear()
	err := d.form.close()
	d.channel.Wake()
	return err
}

func (d *device) closedError(call string) error {
	return fmt.Errorf("shm: device %s: %s: %w", d.name, call, verbs.ErrClosed)
}

func argumentError(format string, args ...any) error {
	return &verbs.ArgumentError{Device: deviceName, Text: fmt.Sprintf(format, args...)}
}

// Neighbor opens the device at address for mapping.
func (d *device) Neighbor(address string) (verbs.Neighbor, error) {
	if d.closed.Load() {
		return nil, d.closedError("Neighbor")
	}
	return d.neighbor(address)
}

// Watch watches the device at address.
func (d *device) Watch(address string, lost func(cause error)) (func(), error) {
	if d.closed.Load() {
		return nil, d.closedError("Watch")
	}
	w := &watch{device: d, lost: lost}
	err := d.watch(address, w)
	if errors.Is(err, verbs.ErrPeerGone) {
		w.report(err)
		return w.stop, nil
	}
	if err != nil {
		return nil, err
	}
	return func() { w.stop(); d.unwatch(address, w) }, nil
}
