//go:build ibverbs && cgo && linux

package ibv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/onesided/rma/internal/cpucopy"
	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/shm"
)

// device is a port of a card as one rank has opened it.
type device struct {
	connectionManager
	card       *card
	name       string
	port       int
	gid        gid
	global     bool
	mtu        mtu
	timeout    uint8
	onDemand   bool
	limits     limits
	attributes verbs.Attributes
	costs      verbs.Costs
	// rate is the port's rate in bytes per second, 0 if unknown.
	rate        float64
	opened      time.Time
	channel     *armedChannel
	pairs       pairTable
	regions     regionTable
	postBuffers postBuffers
	watch       watch
	// memory provides the memory of AllocateMemory.
	memory *shm.Device
	closed atomic.Bool
	// queues is replaced, never changed.
	queues atomic.Pointer[[]*completionQueue]

	// mu is held to make and end the parts of the device, and is taken before every other lock.
	mu sync.Mutex

	askedMu sync.Mutex
	asked   []*connectionRequest
	// waiting mirrors the length of asked.
	waiting atomic.Int32
}

var (
	_ verbs.Device  = (*device)(nil)
	_ verbs.Severer = (*queuePair)(nil)
)

// Attributes returns the attributes of the device.
func (d *device) Attributes() verbs.Attributes { return d.attributes }

// Now returns the time since the device was opened.
func (d *device) Now() time.Duration { return time.Since(d.opened) }

// Copy copies with the CPU.
func (d *device) Copy(dst, src []byte) int { return cpucopy.Copy(dst, src) }

// Channel returns the event channel of the rank.
func (d *device) Channel() verbs.CompletionChannel { return d.channel }

// AllocateMemory returns zeroed memory.
func (d *device) AllocateMemory(n int) ([]byte, error) {
	return d.zeroed("AllocateMemory", n, d.memory.AllocateMemory)
}

// ReserveMemory returns zeroed memory that is not backed yet.
func (d *device) ReserveMemory(n int) ([]byte, error) {
	return d.zeroed("ReserveMemory", n, d.memory.ReserveMemory)
}

// zeroed returns n bytes that get makes.
func (d *device) zeroed(call string, n int, get func(n int) ([]byte, error)) ([]byte, error) {
	if d.closed.Load() {
		return nil, d.closedError(call)
	}
	if n <= 0 {
		return nil, d.argumentError("%s of %s; allowed is 1 or more", call, errtext.Count(n, "byte"))
	}
	memory, err := get(n)
	if err != nil {
		return nil, errtext.Under("ibv: ", "shm: ", err)
	}
	return memory, nil
}

// BackMemory backs memory of ReserveMemory.
func (d *device) BackMemory(ctx context.Context, memory []byte) (int, error) {
	backed, err := d.memory.BackMemory(ctx, memory)
	if err != nil {
		return backed, errtext.Under("ibv: ", "shm: ", err)
	}
	return backed, nil
}

// FreeMemory frees memory.
func (d *device) FreeMemory(memory []byte) error {
	if d.closed.Load() {
		return d.closedError("FreeMemory")
	}
	if err := d.memory.FreeMemory(memory); err != nil {
		return errtext.Under("ibv: ", "shm: ", err)
	}
	return nil
}

// work runs f in a goroutine that Close waits for. It returns false if the device is closed.
func (d *device) work(f func()) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed.Load() {
		return false
	}
	d.connectionManager.working.Go(f)
	return true
}

// endpoint returns the endpoint of a queue pair of this device.
func (d *device) endpoint(number uint32) (endpoint, error) {
	// The port's LID may have changed since the device was opened.
	p, err := d.card.port(d.port)
	return endpoint{number: number, packet: randomPacket(), mtu: d.mtu, gid: d.gid.address, kind: d.gid.kind, lid: p.lid, ethernet: p.ethernet,
		readsOut: uint8(min(mostReads, d.limits.readsOut)), readsIn: uint8(min(mostReads, d.limits.readsIn))}, err
}

// transition returns the error of a queue pair that did not reach a state.
func (d *device) transition(number uint32, state string, p *path, cause error) error {
	actual, err := d.card.port(d.port)
	if err != nil {
		actual = port{state: portActive, mtu: p.mtu}
	}
	gids, _ := d.card.gids(d.port)
	return &TransitionError{Device: d.name, Port: d.port, QueuePair: number, State: state, Reason: p.explain(state, actual, gids, d.limits, cause), Cause: cause}
}

// refused returns the error of what the card or the system has refused.
func (d *device) refused(what string, cause error) error {
	if errors.Is(cause, syscall.ENOMEM) || errors.Is(cause, syscall.EAGAIN) {
		return fmt.Errorf("ibv: %s: %s: %w%s: %w", d.name, what, verbs.ErrMemory, lockedText(), cause)
	}
	return fmt.Errorf("ibv: %s: %s: %w", d.name, what, cause)
}

// lockedText describes the limit on locked memory, if there is one.
func lockedText() string {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit); err != nil || limit.Cur == unix.RLIM_INFINITY {
		return ""
	}
	return fmt.Sprintf(" (this process may lock %s, RLIMIT_MEMLOCK: raise it with ulimit -l unlimited, limits.conf, or LimitMEMLOCK of the service that starts it)", errtext.Count(limit.Cur, "byte"))
}

// goneError returns the error of an ended connection to a peer.
func (d *device) goneError(peer string, err error) error {
	switch {
	case errors.Is(err, ErrProtocol):
		return fmt.Errorf("ibv: %s: %s: %w", d.name, peer, err)
	case os.IsTimeout(err):
		err = fmt.Errorf("the peer was silent for %v", d.connectionManager.connections.silence)
	case errors.Is(err, errBye):
		return fmt.Errorf("ibv: %s: %s: %w: %w", d.name, peer, verbs.ErrDisconnected, err)
	}
	return fmt.Errorf("ibv: %s: %s: %w: %w", d.name, peer, verbs.ErrPeerGone, err)
}

func (d *device) closedError(call string) error {
	return fmt.Errorf("ibv: %s: %s: %w", d.name, call, verbs.ErrClosed)
}

func (d *device) argumentError(format string, args ...any) error {
	return &verbs.ArgumentError{Device: d.attributes.Name, Text: fmt.Sprintf(format, args...)}
}

func argumentError(format string, args ...any) error {
	return &verbs.ArgumentError{Device: deviceName, Text: fmt.Sprintf(format, args...)}
}

// Close closes the device.
func (d *device) Close() error {
	d.mu.Lock()
	if d.closed.Swap(true) {
		d.mu.Unlock()
		return nil
	}
	d.mu.Unlock()
	errs := []error{d.connectionManager.shut()}
	for _, q := range d.pairs.all() {
		errs = append(errs, q.Close())
	}
	d.connectionManager.working.Wait()
	d.connectionManager.eventLog.close()
	// A connection that was just made may have left queue pairs.
	for _, q := range d.pairs.all() {
		errs = append(errs, q.Close())
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	errs = append(errs, d.regions.close())
	for _, c := range *d.queues.Load() {
		c.mu.Lock()
		errs = append(errs, c.destroy())
		c.mu.Unlock()
	}
	d.queues.Store(new([]*completionQueue))
	d.watch.close()
	d.card.close()
	d.channel.Wake()
	return errors.Join(append(errs, d.memory.Close())...)
}
