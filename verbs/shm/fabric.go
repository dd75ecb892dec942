package shm

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/onesided/rma/internal/bounds"
	"github.com/onesided/rma/internal/cpucopy"
	"github.com/onesided/rma/internal/eventchannel"
	"github.com/onesided/rma/verbs"
)

const (
	pageBytes     = 4096
	hugePageBytes = 2 << 20
)

// A Fabric connects the devices of ranks that are goroutines of this process. Memory that its devices allocated lasts
// until all of them are closed. So a rank that ends early does not take it from the others.
type Fabric struct {
	id uint64

	mu      sync.Mutex
	devices map[string]*local
	last    int
	open    int
	rings   map[uint64]ring
	ringNo  uint64

	private private
}

var fabrics atomic.Uint64

// NewFabric returns a fabric without devices.
func NewFabric() *Fabric {
	return &Fabric{id: fabrics.Add(1), devices: make(map[string]*local), rings: make(map[uint64]ring)}
}

// local is the form of a device on a fabric.
type local struct {
	*device
	fabric *Fabric
	ended  atomic.Bool

	mu       sync.Mutex
	watchers map[*watch]struct{}
	// known are the peers that Neighbor has returned, by address. They stay, also when they are gone.
	known map[string]*localPeer
}

// Open opens a device on the fabric.
func (f *Fabric) Open() (*Device, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last++
	address := fmt.Sprintf("fabric:%d:%d", f.id, f.last)
	l := &local{fabric: f, watchers: make(map[*watch]struct{}), known: make(map[string]*localPeer)}
	l.device = &device{form: l, name: "fabric", address: address, channel: eventchannel.New(), opened: time.Now(), pairs: make(map[uint32]*queuePair)}
	f.devices[address] = l
	if f.open++; f.open == 1 {
		f.private.revive()
	}
	return &Device{l.device}, nil
}

func (f *Fabric) find(address string) (*local, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if l := f.devices[address]; l != nil {
		return l, nil
	}
	var id uint64
	var n int
	if _, err := fmt.Sscanf(address, "fabric:%d:%d", &id, &n); err != nil || id != f.id {
		return nil, &verbs.CapabilityError{Device: "fabric", Capability: "reach " + address, Reason: "the address is not of this fabric"}
	}
	return nil, fmt.Errorf("shm: %s: %w", address, verbs.ErrPeerGone)
}

func (l *local) reserve(n int) ([]byte, error) {
	if n > math.MaxInt-pageBytes {
		return nil, fmt.Errorf("shm: %d bytes: %w", n, verbs.ErrMemory)
	}
	memory, err := l.fabric.private.reserve(n)
	if err != nil {
		return nil, fmt.Errorf("shm: %d bytes: %w", n, err)
	}
	return memory, nil
}

func (l *local) back(ctx context.Context, memory []byte) (int, error) {
	backed, err := l.fabric.private.back(ctx, memory)
	if err != nil {
		return backed, fmt.Errorf("shm: %w", err)
	}
	return backed, nil
}

func (l *local) free(memory []byte) error {
	if !l.fabric.private.free(memory) {
		return argumentError("FreeMemory: %d bytes that AllocateMemory did not give, or that were freed", len(memory))
	}
	return nil
}

func (l *local) publish(*region) error { return nil }
func (l *local) retract(*region)       {}

func (l *local) newRing() (ring, uint64, error) {
	r := ringOver(alignedBytes(ringMemory))
	f := l.fabric
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ringNo++
	f.rings[f.ringNo] = r
	return r, f.ringNo, nil
}

func (l *local) freeRing(_ ring, locator uint64) {
	l.fabric.mu.Lock()
	defer l.fabric.mu.Unlock()
	delete(l.fabric.rings, locator)
}

func (l *local) neighbor(address string) (peer, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.known[address]; p != nil {
		return p, nil
	}
	to, err := l.fabric.find(address)
	if err != nil {
		return nil, err
	}
	p := (*localPeer)(to)
	if err := p.gone(); err != nil {
		return nil, err
	}
	l.known[address] = p
	return p, nil
}

func (l *local) dial(q *queuePair, address string, hello []byte) error {
	to, err := l.fabric.find(address)
	if err != nil {
		return err
	}
	if !q.attach((*localPeer)(to)) {
		return l.closedError("Connect")
	}
	return to.ask(&localRequest{hello: hello, from: l, to: to, out: q.in})
}

// localRequest is a connection request of a device of the fabric.
type localRequest struct {
	respondsOnce
	hello    []byte
	from, to *local
	out      ring
}

func (r *localRequest) Hello() []byte { return r.hello }

func (r *localRequest) Accept(config verbs.QueuePairConfig) (verbs.QueuePair, error) {
	return r.accept(func() (verbs.QueuePair, error) { return r.to.accept(config, (*localPeer)(r.from), r.out) })
}

func (r *localRequest) Reject(reason string) {
	if !r.given.Swap(true) {
		r.to.reject((*localPeer)(r.from), r.out, reason)
	}
}

func (l *local) watch(address string, w *watch) error {
	to, err := l.fabric.find(address)
	if err != nil {
		return err
	}
	to.mu.Lock()
	defer to.mu.Unlock()
	if to.ended.Load() {
		return to.gonePeer()
	}
	to.watchers[w] = struct{}{}
	return nil
}

func (l *local) unwatch(address string, w *watch) {
	if to, err := l.fabric.find(address); err == nil {
		to.mu.Lock()
		defer to.mu.Unlock()
		delete(to.watchers, w)
	}
}

func (l *local) gonePeer() error { return fmt.Errorf("shm: %s: %w", l.address, verbs.ErrPeerGone) }

func (l *local) close() error {
	l.mu.Lock()
	l.ended.Store(true)
	watchers := l.watchers
	l.watchers = nil
	l.mu.Unlock()
	for w := range watchers {
		w.report(l.gonePeer())
	}
	f := l.fabric
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.devices, l.address)
	for _, p := range l.departed {
		delete(f.rings, p.locator)
	}
	if f.open--; f.open == 0 {
		f.private.retire(f)
	}
	return nil
}

// localPeer is a device of the fabric as its peers see it.
type localPeer local

func (p *localPeer) gone() error {
	if p.device.closed.Load() {
		return (*local)(p).gonePeer()
	}
	return nil
}

func (p *localPeer) Wake() { p.channel.WakeIfSleeping() }

func (p *localPeer) ringAt(locator uint64) (ring, error) {
	p.fabric.mu.Lock()
	defer p.fabric.mu.Unlock()
	if r, ok := p.fabric.rings[locator]; ok {
		return r, nil
	}
	return ring{}, fmt.Errorf("shm: no ring %d: %w", locator, verbs.ErrPeerGone)
}

func (p *localPeer) access(address uint64, n int, rkey uint32, right verbs.Access) ([]byte, bool, verbs.Status) {
	r := p.regions.find(rkey)
	if r == nil || r.access&right == 0 || !bounds.Contains(r.extent.First, r.extent.Length, address, uint64(n)) {
		return nil, false, verbs.StatusRemoteAccess
	}
	at := address - r.extent.First
	return r.memory[at : at+uint64(n)], false, verbs.StatusSuccess
}

// Map returns the region's memory itself.
func (p *localPeer) Map(remote verbs.RemoteRegion) ([]byte, error) {
	if err := p.gone(); err != nil {
		return nil, err
	}
	r := p.regions.find(remote.RKey)
	if r == nil || r.access&remoteRights == 0 || !bounds.Contains(r.extent.First, r.extent.Length, remote.Address, remote.Length) {
		return nil, fmt.Errorf("shm: Map of %d bytes: %w", remote.Length, verbs.StatusRemoteAccess)
	}
	at := remote.Address - r.extent.First
	return r.memory[at : at+remote.Length : at+remote.Length], nil
}

// ReadAt copies out of a region.
func (p *localPeer) ReadAt(into []byte, remote verbs.RemoteRegion, offset uint64) error {
	return p.copyAt(into, remote, offset, verbs.RemoteRead)
}

// WriteAt copies into a region.
func (p *localPeer) WriteAt(from []byte, remote verbs.RemoteRegion, offset uint64) error {
	return p.copyAt(from, remote, offset, verbs.RemoteWrite)
}

func (p *localPeer) copyAt(mine []byte, remote verbs.RemoteRegion, offset uint64, right verbs.Access) error {
	if err := p.gone(); err != nil {
		return err
	}
	if offset > remote.Length || uint64(len(mine)) > remote.Length-offset {
		return argumentError("%d bytes at %d of a region of %d", len(mine), offset, remote.Length)
	}
	if len(mine) == 0 {
		return nil
	}
	theirs, _, status := p.access(remote.Address+offset, len(mine), remote.RKey, right)
	if status != verbs.StatusSuccess {
		return fmt.Errorf("shm: %w", status)
	}
	if right == verbs.RemoteRead {
		cpucopy.Copy(mine, theirs)
	} else {
		cpucopy.Copy(theirs, mine)
	}
	return nil
}
