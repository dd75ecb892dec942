package verbs

import (
	"context"
	"fmt"
	"time"
)

// A Device is a card as one rank has opened it. Its methods may be called from any goroutine. After Close its methods,
// and those of the objects that it made, return ErrClosed if they return an error, and have no effect otherwise.
type Device interface {
	// Attributes returns what the device is and can do. They never change.
	Attributes() Attributes

	// Costs returns what the device's operations cost: measured when it was opened, or taken from a profile.
	Costs() Costs

	// Now is the device's clock: the time since an origin that the device chooses. It never goes back. In virtual time
	// it moves only while every rank waits. Now may be called after Close.
	Now() time.Duration

	// Copy copies min(len(dst), len(src)) bytes with the CPU and returns the number of bytes copied. A device in
	// virtual time charges the caller for it.
	Copy(dst, src []byte) int

	// AllocateMemory returns n zeroed bytes outside the Go heap. They are aligned to a page, and to a huge page from 2
	// MiB on. The memory is backed at return. Peers can map it if the device is a [Mapper]. If there is not enough
	// memory, AllocateMemory returns an error that wraps [ErrMemory]. An n below 1 is an error too.
	AllocateMemory(n int) ([]byte, error)

	// FreeMemory frees memory of AllocateMemory. Every region over it has been deregistered before. Until the device is
	// closed, a late access to the memory causes no fault and affects no other memory. Its contents are undefined.
	// Memory that is not of AllocateMemory, or was freed before, is an error.
	FreeMemory(memory []byte) error

	// RegisterMemory makes memory known to the device. The region keeps its memory alive until it is deregistered,
	// unless it is [Weak]. If the device cannot serve this memory with these rights, RegisterMemory returns a
	// [*CapabilityError].
	RegisterMemory(memory []byte, access Access) (MemoryRegion, error)

	// CreateCompletionQueue returns a queue that holds at least capacity completions. A negative capacity is an error.
	// A queue that overflows puts the queue pairs that complete into it in StateError.
	CreateCompletionQueue(capacity int) (CompletionQueue, error)

	// Channel returns the device's only completion channel, on which this rank sleeps.
	Channel() CompletionChannel

	// Address returns what a peer passes to Connect. It is printable, has no spaces and is at most 256 bytes long.
	Address() string

	// Connect starts to connect a new queue pair to the device at address and returns at once. The peer's
	// PollConnections returns hello, which has at most MaxHello bytes. Requests may be posted immediately; they leave
	// when the peer has accepted.
	//
	// If the connection cannot be made, or is rejected, the queue pair goes to StateError and posted requests are
	// flushed. QueuePair.Err then returns the reason, with the text of Reject. Connect itself returns an error for a
	// hello that is too long, queues of another device, and negative sizes. A device may connect to itself.
	Connect(address string, hello []byte, config QueuePairConfig) (QueuePair, error)

	// PollConnections stores at most len(into) connection requests of peers in into and returns their number. A new
	// request wakes the Channel.
	PollConnections(into []ConnectionRequest) int

	// Close destroys every queue pair, region and queue of the device and frees its allocations. The peers' queue pairs
	// to it fail, and a peer's [Watcher] reports it. A second Close returns nil.
	Close() error
}

// MaxHello is the longest hello of Connect, in bytes.
const MaxHello = 196

// Attributes are the properties of a device.
type Attributes struct {
	// Name is the device's kind and instance, such as "shm" or "ibv:mlx5_0".
	Name string
	// MaxInline is the maximum number of bytes of a request flagged Inline.
	MaxInline int
	// MaxSegments is the maximum length of a scatter/gather list.
	MaxSegments int
	// MaxMessage is the maximum number of bytes that one work request moves.
	MaxMessage int
	// ReservedLKey, if it is not zero, names any memory of this process in
	// segments, registered or not (IBTA 10.6.3, reserved L_Key).
	ReservedLKey uint32
	// Spin is how long a waiting caller should poll before it sleeps on the Channel. It is zero where polling never
	// makes time pass.
	Spin time.Duration
	// CoherentAtomics reports whether the device's atomics are atomic with respect to CPU atomics on the same memory.
	CoherentAtomics bool
	// CardAtomics reports whether the card executes the atomics of peers by itself, without the processor of this rank.
	// On other devices the processor executes them.
	CardAtomics bool
	// OrderedWrites reports whether the bytes of one write, of all its segments, are placed in ascending order, as
	// processors see them that load words atomically. No standard promises this order. InfiniBand promises it between
	// writes.
	OrderedWrites bool
	// Resends reports whether the card may read the segments of a request again after the peer has executed it, until
	// the request completes. This happens when an acknowledgement is lost while later messages of the peer arrive.
	Resends bool
	// Virtual reports whether Now is virtual time.
	Virtual bool
}

// Costs are the costs of a device's operations. Rates are in bytes per second. Zero means unknown.
type Costs struct {
	// Post is the CPU time to post one request, Gap the least time between two requests on the wire.
	Post, Gap time.Duration
	// Serve is the CPU time of both sides together that a message costs beyond a write or a read: to receive it, to
	// decode it, and to respond.
	Serve time.Duration
	// PollRing is the time to check one place in memory that the card writes.
	PollRing time.Duration
	// Latency is the one-way time of an empty message, ReadLatency the round trip of an empty read.
	Latency, ReadLatency time.Duration
	// Bandwidth is the rate of the link in one direction, DuplexBandwidth that of both directions together.
	Bandwidth, DuplexBandwidth float64
	// CopyLatency and CopyBandwidth are the costs of Copy.
	CopyLatency   time.Duration
	CopyBandwidth float64
	// Register and Deregister are the costs of a region of one page, RegisterPage and DeregisterPage of each further
	// page.
	Register, RegisterPage     time.Duration
	Deregister, DeregisterPage time.Duration
}

// Access is the set of rights that a memory region grants.
type Access uint32

// The rights. Local reading is always granted.
const (
	// LocalWrite lets receives, reads and atomics of this device write to the region.
	LocalWrite Access = 1 << iota
	// RemoteWrite lets peers write to the region, RemoteRead read it, and RemoteAtomic apply atomics to it. Unlike in
	// InfiniBand, none of them needs LocalWrite.
	RemoteWrite
	RemoteRead
	RemoteAtomic
	// Weak is a region that does not keep its memory alive. Its Memory method returns nil. The caller keeps the memory
	// alive until every request that names the region has completed. Weak cannot be combined with a remote right.
	Weak
)

// remoteRights are the rights that peers use.
const remoteRights = RemoteWrite | RemoteRead | RemoteAtomic

// Check returns what is wrong with a set of rights, or "" if nothing is. Implementations of RegisterMemory call it.
func (a Access) Check() string {
	switch {
	case a&^(LocalWrite|remoteRights|Weak) != 0:
		return fmt.Sprintf("access %#x has unknown rights", uint32(a))
	case a&Weak != 0 && a&remoteRights != 0:
		return fmt.Sprintf("access %#x: a weak region grants no remote right", uint32(a))
	}
	return ""
}

// A MemoryRegion is memory that is registered with a device.
type MemoryRegion interface {
	// LKey returns the key that names the region in segments of this device's requests.
	LKey() uint32
	// Remote returns the description by which peers access the region.
	Remote() RemoteRegion
	// Memory returns the registered memory, or nil for a Weak region.
	Memory() []byte
	// Deregister ends the region. Later requests that name it fail. A second Deregister returns an error that wraps
	// ErrClosed.
	Deregister() error
}

// A RemoteRegion describes a memory region to peers. It may be sent to a peer as its three numbers.
type RemoteRegion struct {
	// Address is the address of the region's first byte, in the numbering of its owner.
	Address uint64
	// Length is in bytes.
	Length uint64
	// RKey proves to the owner that the requester was given access to the region.
	RKey uint32
}

// A Mapper is a device that can map memory of peers into this process, for loads and stores.
type Mapper interface {
	// Neighbor opens the device at address for mapping. It returns a *CapabilityError if that device shares no memory
	// with this process. The same address returns the same Neighbor. A device is its own neighbor.
	Neighbor(address string) (Neighbor, error)
}

// A Neighbor is a peer device that shares memory with this one.
type Neighbor interface {
	// Map returns the region's memory, mapped in this process. It stays valid until this device is closed, even if the
	// peer dies. After the peer deregisters the region, its contents are undefined. Map returns a *CapabilityError for
	// a region of another process whose memory is not from AllocateMemory.
	Map(region RemoteRegion) ([]byte, error)
	// Wake wakes the peer if it sleeps on its Channel. Before, the caller has stored what the peer waits for with a
	// sequentially consistent atomic operation. Wake is a load when no rank sleeps.
	Wake()
	// ReadAt and WriteAt copy from and to a region that Map rejected, without the peer taking part, if the system
	// permits it. offset is in bytes from the region's first byte. A permanent failure is a *CapabilityError.
	ReadAt(into []byte, region RemoteRegion, offset uint64) error
	WriteAt(from []byte, region RemoteRegion, offset uint64) error
}

// A Reserver is a device that can reserve memory before it is backed. Backing a large allocation takes seconds.
type Reserver interface {
	// ReserveMemory is AllocateMemory without the pages. Each page is backed when it is first touched, or by
	// BackMemory. If the machine has no page left at a touch, the process ends.
	ReserveMemory(n int) ([]byte, error)
	// BackMemory backs memory of ReserveMemory with pages and returns the number of bytes, from the first on, that are
	// backed. It checks the context every few MiB. After the context's error the caller may continue with the rest. If
	// there is not enough memory, BackMemory returns an error that wraps [ErrMemory].
	BackMemory(ctx context.Context, memory []byte) (backed int, err error)
}

// A Watcher is a device that detects the death of a peer without traffic.
type Watcher interface {
	// Watch calls lost with the cause soon after the device at address was closed or its process has ended. It calls
	// lost once, from a goroutine of the device. For a peer that is already gone it calls lost at once. Watch returns
	// an error if the peer cannot be watched. stop ends the watch.
	Watch(address string, lost func(cause error)) (stop func(), err error)
}

// A Server is a device whose protocol runs on the CPU. A poll of it may have served a peer although nothing has
// completed here.
type Server interface {
	// Activity returns a counter of what has arrived from peers and of what polls have sent to them. Its unit is the
	// device's own. While it grows, more is likely to arrive soon.
	Activity() uint64
	// Served returns how many requests peers have made of this side's memory whose end they wait for: reads, atomics,
	// and writes whose completion is reported. When it grows, Activity grows too.
	Served() uint64
	// Pending reports whether something of this side waits for room to leave, and continues only in a poll.
	Pending() bool
}

// A Meter is a device that counts the frames it sends.
type Meter interface {
	// Frames returns the number of messages, requests and responses that have left for other devices. Pure
	// acknowledgements do not count: their number depends on which side sleeps when.
	Frames() uint64
}

// A Charger is a device in virtual time. Its caller reports the work of its processor.
type Charger interface {
	// Copied charges the caller for copying n bytes.
	Copied(n int)
	// Takes returns the time that the caller's processor needs from now on for work. work is the time that an
	// undisturbed processor needs for it.
	Takes(work time.Duration) time.Duration
	// Work keeps the caller's processor busy for the limit, or until the Channel is woken after the ticket, as in
	// Sleep.
	Work(ticket uint32, limit time.Duration)
}

// A RingPoller is a device in virtual time whose caller announces how many rings in its memory it is going to poll.
type RingPoller interface {
	// PollRings delivers everything that the card has placed by the time of the poll, and charges the caller for
	// polling n rings.
	PollRings(n int)
}

// A Severer is a queue pair that can be ended because its peer is presumed dead. The peer may only be stopped, or cut
// off, and come back.
type Severer interface {
	// Sever puts the queue pair in StateError. Requests of the peer that have arrived are applied; later ones are not.
	// Completions are kept. Both sides get an [ErrDisconnected].
	Sever()
}

// A CompletionChannel is the event channel on which a rank sleeps until something arrives. Sleeping takes two steps, so
// that no wake-up is missed:
//
//	ticket := channel.Prepare()
//	if nothing has come yet {
//		channel.Sleep(ticket, limit)
//	}
//	channel.Finish()
//
// Several goroutines may sleep at once.
type CompletionChannel interface {
	// Prepare announces a sleeper and returns its ticket. Every later Wake ends the Sleep with this ticket. Prepare is
	// sequentially consistent with the loads that follow it.
	Prepare() uint32
	// Sleep returns when Wake was called after Prepare, or after limit unless limit is negative. It may also return
	// spuriously.
	Sleep(ticket uint32, limit time.Duration)
	// Finish takes the announcement back. Each Prepare needs one Finish.
	Finish()
	// Wake wakes all sleepers. Any goroutine of this process may call it.
	Wake()
}
