package tcp

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/onesided/rma/internal/cpucopy"
	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/shm"
)

const deviceName = "tcp"

// device is the rank's end of all its connections.
type device struct {
	connectionManager
	opened  time.Time
	silence time.Duration
	regions regionTable
	channel channel
	poller  poller
	// memory provides the memory of AllocateMemory.
	memory *shm.Device
	closed atomic.Bool
	// queues counts the completion queues, which drive the device.
	queues atomic.Int32

	// table holds the connections that have a socket, by slot, with holes. The slice is replaced, never changed.
	table atomic.Pointer[[]*connection]
	live  atomic.Int32
	// wantedVisits counts the connections that need a visit although their socket may be silent. delayed counts those
	// with an acknowledgement that waits to be piggybacked.
	wantedVisits, delayed atomic.Int32
	// overdue flushes the delayed acknowledgements when the device is not polled any more. awaited: it is set.
	overdue *time.Timer
	awaited atomic.Bool
	// blocked counts the connections whose output waits for room.
	blocked atomic.Int32
	// nextTick is the next time, since opened, at which the peers are checked. lookSoon makes the next poll check all
	// connections.
	nextTick atomic.Int64
	lookSoon atomic.Bool

	// driving is held by the goroutine that drives. It guards slots; lastActive, the slot that received last;
	// aloneUntil, until when only that slot is polled; alone, the length of that time; pressAt, when blocked output is
	// tried again; and input, for the connection that receives.
	driving           sync.Mutex
	input             inputBuffer
	slots             []int32
	lastActive        int
	aloneUntil, alone time.Duration
	pressAt           time.Duration
	// activity counts reads that got something, and visits that sent something.
	activity atomic.Uint64
	// served counts the peers' reads and atomics, and their signalled writes.
	served atomic.Uint64
	// batches is memory for output.
	batches batches
	// frames counts the frames made.
	frames atomic.Uint64

	mu         sync.Mutex
	pairs      map[uint32]*queuePair
	lastNumber uint32
	// connectionRequests are the connection requests not yet polled.
	connectionRequests []*connectionRequest
	// waiting mirrors the length of connectionRequests.
	waiting atomic.Int32
}

var attributes = verbs.Attributes{
	Name: deviceName, MaxInline: maxInline, MaxSegments: maxSegments, MaxMessage: maxMessage,
	ReservedLKey: reservedLKey, Spin: 50 * time.Microsecond, CoherentAtomics: true,
}

// Attributes returns the attributes of the device.
func (d *device) Attributes() verbs.Attributes { return attributes }

// Now returns the time since the device was opened.
func (d *device) Now() time.Duration { return time.Since(d.opened) }

// Copy copies with the CPU.
func (d *device) Copy(dst, src []byte) int { return cpucopy.Copy(dst, src) }

// Channel returns the event channel of the rank.
func (d *device) Channel() verbs.CompletionChannel { return &d.channel }

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
		return nil, argumentError("%s of %d bytes; allowed is 1 or more", call, n)
	}
	memory, err := get(n)
	if err != nil {
		return nil, errtext.Under("tcp: ", "shm: ", err)
	}
	return memory, nil
}

// BackMemory backs memory of ReserveMemory.
func (d *device) BackMemory(ctx context.Context, memory []byte) (int, error) {
	backed, err := d.memory.BackMemory(ctx, memory)
	if err != nil {
		return backed, errtext.Under("tcp: ", "shm: ", err)
	}
	return backed, nil
}

// FreeMemory frees memory.
func (d *device) FreeMemory(memory []byte) error {
	if d.closed.Load() {
		return d.closedError("FreeMemory")
	}
	if err := d.memory.FreeMemory(memory); err != nil {
		return errtext.Under("tcp: ", "shm: ", err)
	}
	return nil
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
	return r, nil
}

// Frames returns the number of frames that have left for peers, without pure acknowledgements.
func (d *device) Frames() uint64 { return d.frames.Load() }

// Activity returns the number of reads that got something and of visits that sent something.
func (d *device) Activity() uint64 { return d.activity.Load() }

// Served returns how many requests peers have made of this side's memory whose end they wait for.
func (d *device) Served() uint64 { return d.served.Load() }

// Pending reports whether output waits for room.
func (d *device) Pending() bool { return d.blocked.Load() != 0 }

// drive makes progress on all connections. Of several callers one does it; the others return.
func (d *device) drive() {
	if !d.driving.TryLock() {
		return
	}
	table := *d.table.Load()
	now := d.Now()
	// An acknowledgement that begins to wait during this drive is sent by the next drive.
	delayed := d.delayed.Load() != 0
	if now < d.aloneUntil && d.lastActive < len(table) && table[d.lastActive] != nil && !d.lookSoon.Load() {
		table[d.lastActive].look()
	} else {
		d.lookAtAll(table, now)
	}
	press := d.blocked.Load() != 0 && now >= d.pressAt
	if press || delayed || d.wantedVisits.Load() != 0 {
		for _, c := range table {
			if c != nil && (c.wantsVisit.Load() || press && c.blocked.Load()) {
				d.run(c)
			}
			if delayed && c != nil && c.delayed.Load() {
				c.flushAcknowledgement()
			}
		}
	}
	if press {
		d.pressAt = d.Now() + pressPause
	}
	d.driving.Unlock()
}

// maxAckDelay bounds how long an acknowledgement waits if the device is not polled: the program may be waiting for
// what the peer sends only after it. A shorter time costs throughput, because the timer fires at this interval while
// messages arrive: 4 ms made a ping-pong 7 % slower.
const maxAckDelay = 50 * time.Millisecond

// flushAcknowledgements sends the acknowledgements that wait to be piggybacked.
func (d *device) flushAcknowledgements() {
	d.awaited.Store(false)
	for _, c := range *d.table.Load() {
		if c != nil {
			c.flushAcknowledgement()
		}
	}
}

// pressPause is the time between attempts to send where there was no room. In this time a part of the system's buffer
// becomes free; sending smaller parts takes longer.
const pressPause = 10 * time.Microsecond

// The connection that received last is polled alone for a time that grows from shortestAlone to longestAlone while no
// other receives.
const (
	shortestAlone = 500 * time.Nanosecond
	longestAlone  = 32 * time.Microsecond
)

// lookAtAll reads from all connections that have something, and checks the peers when it is time. Finding these
// connections costs another system call. So between two calls only the connection that received last, which is
// the likeliest, is polled. That phase grows the longer no other connection receives.
func (d *device) lookAtAll(table []*connection, now time.Duration) {
	d.lookSoon.Store(false)
	before, others := d.lastActive, false
	d.slots = d.poller.ready(d.slots[:0])
	for _, slot := range d.slots {
		if int(slot) < len(table) && table[slot] != nil && table[slot].look() {
			d.lastActive = int(slot)
			others = others || d.lastActive != before
		}
	}
	if d.alone = min(max(2*d.alone, shortestAlone), longestAlone); others || !d.options.has(PollRecent) {
		d.alone = 0
	}
	d.aloneUntil = now + d.alone
	if int64(now) >= d.nextTick.Load() {
		d.tick(now)
	}
}

// armBlocked makes the poller wake a sleeper when there is room for output.
func (d *device) armBlocked() {
	if d.blocked.Load() == 0 {
		return
	}
	for _, c := range *d.table.Load() {
		if c != nil && c.blocked.Load() {
			c.mu.Lock()
			c.arm(c.blocked.Load())
			c.mu.Unlock()
		}
	}
}

// run visits a connection that wants a visit.
func (d *device) run(c *connection) {
	if c.wantsVisit.Swap(false) {
		d.wantedVisits.Add(-1)
	}
	c.visit()
}

// tick checks the peers.
func (d *device) tick(now time.Duration) {
	d.nextTick.Store(int64(now + d.silence/ticks))
	d.batches.trim()
	at := time.Now()
	for _, c := range *d.table.Load() {
		if c != nil {
			c.tick(at)
		}
	}
}

// untilTick returns the time until the next tick, negative if there is none.
func (d *device) untilTick() time.Duration {
	if d.live.Load() == 0 {
		return -1
	}
	return max(time.Duration(d.nextTick.Load())-d.Now(), 0)
}

// attach adds a connection to those that are driven. Its mutex is held.
func (d *device) attach(c *connection) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed.Load() {
		return d.closedError("queue pair")
	}
	table := slices.Clone(*d.table.Load())
	slot := slices.Index(table, nil)
	if slot < 0 {
		slot = len(table)
		table = append(table, nil)
	}
	if fd := c.stream.descriptor(); fd >= 0 {
		if err := d.poller.add(fd, slot); err != nil {
			return err
		}
	}
	table[slot], c.slot = c, slot
	d.table.Store(&table)
	d.live.Add(1)
	return nil
}

// rearm sets whether the poller waits for room for a connection's output.
func (d *device) rearm(c *connection, output bool) {
	d.mu.Lock()
	if fd := c.stream.descriptor(); fd >= 0 && c.slot >= 0 {
		d.poller.watch(fd, c.slot, output)
	}
	d.mu.Unlock()
	if output {
		d.channel.Wake()
	}
}

// detach undoes attach. It is called before the stream is closed.
func (d *device) detach(c *connection) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c.slot < 0 {
		return
	}
	if fd := c.stream.descriptor(); fd >= 0 {
		d.poller.remove(fd)
	}
	table := slices.Clone(*d.table.Load())
	table[c.slot], c.slot = nil, -1
	for len(table) > 0 && table[len(table)-1] == nil {
		table = table[:len(table)-1]
	}
	d.table.Store(&table)
	d.live.Add(-1)
}

// adopt assigns a queue pair its number.
func (d *device) adopt(q *queuePair) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed.Load() {
		return d.closedError("queue pair")
	}
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

func (d *device) forget(q *queuePair) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.pairs, q.number)
}

// Close closes the device.
func (d *device) Close() error {
	d.mu.Lock()
	if d.closed.Swap(true) {
		d.mu.Unlock()
		return nil
	}
	pairs := make([]*queuePair, 0, len(d.pairs))
	for _, q := range d.pairs {
		pairs = append(pairs, q)
	}
	d.connectionRequests = nil
	d.waiting.Store(0)
	d.mu.Unlock()
	d.overdue.Stop()
	err := d.connectionManager.shut()
	for _, q := range pairs {
		_ = q.Close()
	}
	for _, c := range *d.table.Load() {
		if c != nil {
			c.end()
		}
	}
	d.connectionManager.wait()
	d.regions.close()
	// Sleepers are woken before the descriptor that they sleep on is closed.
	d.channel.close()
	d.driving.Lock()
	d.poller.close()
	d.driving.Unlock()
	return firstOf(err, d.memory.Close())
}

// end ends a connection. It sends a bye if that does not block.
func (c *connection) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.abandon()
	if c.phase < phaseClosed {
		c.shut()
	}
}

func (d *device) closedError(call string) error {
	return fmt.Errorf("tcp: device at %s: %s: %w", d.address, call, verbs.ErrClosed)
}

func argumentError(format string, args ...any) error {
	return &verbs.ArgumentError{Device: deviceName, Text: fmt.Sprintf(format, args...)}
}
