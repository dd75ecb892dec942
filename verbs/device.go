package verbs

import (
	"context"
	"fmt"
	"time"
)

// A Device is a card as one rank has opened it. Its methods may be called from
// any goroutine. After Close its methods, and those of what it made, return
// ErrClosed where they return an error, and nothing where they do not.
type Device interface {
	// Attributes tells what the device is and can do. They never change.
	Attributes() Attributes

	// Costs tells what the device's operations cost: measured when it was
	// opened, or taken from a profile.
	Costs() Costs

	// Now is the device's clock: the time since an origin of the device's own.
	// It never goes back. In virtual time it moves only while every rank waits.
	Now() time.Duration

	// Copy copies min(len(dst), len(src)) bytes with the CPU and returns how
	// many. A device in virtual time charges the caller for it.
	Copy(dst, src []byte) int

	// AllocateMemory returns n zeroed bytes outside the Go heap, aligned to a
	// page and to a huge page from 2 MiB up, backed by memory at return. Where
	// the device is a [Mapper] its peers can map them. It is an error wrapping
	// [ErrMemory] if there is not that much; n below 1 is an error too.
	AllocateMemory(n int) ([]byte, error)

	// FreeMemory gives memory of AllocateMemory back. Every region over it has
	// been deregistered. A slice of it that is still used afterwards reads and
	// writes nobody's memory, until the device is closed. Memory that is not
	// of AllocateMemory, or was given back before, is an error.
	FreeMemory(memory []byte) error

	// RegisterMemory makes memory known to the device. A region that grants
	// any remote right keeps its memory alive until it is deregistered; so does any other
	// that is not [Weak].
	// Memory that the device cannot serve with these rights is refused with a
	// [*CapabilityError].
	RegisterMemory(memory []byte, access Access) (MemoryRegion, error)

	// CreateCompletionQueue returns a queue that holds at least capacity
	// completions; a negative capacity is an error. A queue that overflows puts the queue
	// pairs that complete into it in StateError.
	CreateCompletionQueue(capacity int) (CompletionQueue, error)

	// Channel is where this rank sleeps. There is one a device.
	Channel() CompletionChannel

	// Address is what a peer passes to Connect: printable, without spaces, at
	// most 256 bytes.
	Address() string

	// Connect starts to connect a new queue pair to the device at address and
	// returns at once. hello (at most MaxHello bytes) is handed to the peer's
	// PollConnections. Requests may be posted immediately and leave when the
	// peer has accepted. If the connection cannot be made, or is rejected,
	// the queue pair goes to StateError, what was posted is flushed, and
	// QueuePair.Err says why, with the text of Reject. A hello that is too
	// long, queues that are not this device's and negative sizes are errors
	// of Connect itself. A device may connect to itself.
	Connect(address string, hello []byte, config QueuePairConfig) (QueuePair, error)

	// PollConnections takes up to len(into) requests to connect that peers
	// have made and returns how many. A new request rings the Channel.
	PollConnections(into []ConnectionRequest) int

	// Close destroys every queue pair, region and queue and frees every
	// allocation of the device. Peers see their queue pairs to it fail, and
	// [Watcher]s are told. A second Close returns nil.
	Close() error
}

// MaxHello is the longest hello of Connect, in bytes.
const MaxHello = 196

// Attributes of a device.
type Attributes struct {
	// Name is the device's kind and instance, such as "shm" or "ibv:mlx5_0".
	Name string
	// MaxInline is the most bytes that a request flagged Inline carries.
	MaxInline int
	// MaxSegments is the longest scatter/gather list.
	MaxSegments int
	// MaxMessage is the most bytes that one work request moves.
	MaxMessage int
	// ReservedLKey, if it is not zero, names any memory of this process in
	// segments, registered or not (IBTA 10.6.3, reserved L_Key).
	ReservedLKey uint32
	// Spin is how long a caller that waits should look again and again before
	// it sleeps on the Channel. Zero where looking never makes time pass.
	Spin time.Duration
	// CoherentAtomics tells that the device's atomics are atomic with respect
	// to CPU atomics on the same memory.
	CoherentAtomics bool
	// CardAtomics tells that the card carries out the atomics of peers by itself, which takes
	// no time of this rank's processor. On other devices the processor does.
	CardAtomics bool
	// OrderedWrites tells that the bytes of one write, of all its segments, are placed in rising
	// order, as processors see them that load words atomically. No standard promises it, as
	// InfiniBand does of several writes.
	OrderedWrites bool
	// Resends tells that the card may read the segments of a request again that the peer has
	// carried out, until the request completes: the word of that may be lost on the way,
	// while what the peer sends thereupon arrives.
	Resends bool
	// Virtual tells that Now is virtual time.
	Virtual bool
}

// Costs of a device's operations. Rates are in bytes a second; zero is unknown.
type Costs struct {
	// Post is the CPU's time to post one request, Gap the least time between
	// two requests on the wire.
	Post, Gap time.Duration
	// Serve is what a message costs the CPUs of both sides together that a write or a
	// read does not: to receive it, to see what it asks, and to answer.
	Serve time.Duration
	// PollRing is what it takes to look at a place in memory that the card writes.
	PollRing time.Duration
	// Latency is one way for an empty message, ReadLatency there and back for
	// an empty read.
	Latency, ReadLatency time.Duration
	// Bandwidth of the link in one direction, and DuplexBandwidth of both
	// directions together.
	Bandwidth, DuplexBandwidth float64
	// CopyLatency and CopyBandwidth are of Copy.
	CopyLatency   time.Duration
	CopyBandwidth float64
	// Register and Deregister are for a region of one page, RegisterPage and
	// DeregisterPage for each further page.
	Register, RegisterPage     time.Duration
	Deregister, DeregisterPage time.Duration
}

// Access is the set of rights that a memory region grants.
type Access uint32

// Local reading is always granted.
const (
	// LocalWrite lets receives, reads and atomics of this device write.
	LocalWrite Access = 1 << iota
	// RemoteWrite, RemoteRead and RemoteAtomic let the peers' requests.
	RemoteWrite
	RemoteRead
	RemoteAtomic
	// Weak has the region not keep its memory alive, and its Memory be nil: who names it in a
	// request keeps the memory alive until that has completed. It goes with no remote right.
	Weak
)

// remoteRights are those of peers.
const remoteRights = RemoteWrite | RemoteRead | RemoteAtomic

// Check says what is wrong with a set of rights, "" if nothing is: for RegisterMemory.
func (a Access) Check() string {
	switch {
	case a&^(LocalWrite|remoteRights|Weak) != 0:
		return fmt.Sprintf("access %#x has unknown rights", uint32(a))
	case a&Weak != 0 && a&remoteRights != 0:
		return fmt.Sprintf("access %#x: a weak region grants no remote right", uint32(a))
	}
	return ""
}

// A MemoryRegion is memory that a device knows.
type MemoryRegion interface {
	// LKey names the region in segments of this device's requests.
	LKey() uint32
	// Remote tells where peers find the region.
	Remote() RemoteRegion
	// Memory is what was registered, nil of a Weak region.
	Memory() []byte
	// Deregister ends the region. Requests that name it afterwards fail. A
	// second Deregister is an error wrapping ErrClosed.
	Deregister() error
}

// A RemoteRegion is a memory region as a peer names it. It may be copied to the
// peer as its three numbers.
type RemoteRegion struct {
	// Address of the region's first byte as its owner numbers its memory.
	Address uint64
	// Length in bytes.
	Length uint64
	// RKey proves to the owner that the requester was told of the region.
	RKey uint32
}

// A Mapper is a device that can give this process loads and stores to memory
// of a peer.
type Mapper interface {
	// Neighbor opens the device at address for mapping. An address that
	// shares no memory with this process is a *CapabilityError. Neighbors
	// are cached: the same address gives the same Neighbor. A device is its
	// own neighbor.
	Neighbor(address string) (Neighbor, error)
}

// A Neighbor is a peer device that shares memory with this one.
type Neighbor interface {
	// Map returns the region as this process sees it. It stays valid until
	// this device is closed, also when the peer dies; after the peer
	// deregisters it, its contents are nobody's. A region over memory that is
	// not the device's own (not from AllocateMemory) and belongs to another
	// process is a *CapabilityError.
	Map(region RemoteRegion) ([]byte, error)
	// Ring wakes the peer if it sleeps on its Channel. The caller has stored
	// what the peer waits for by a sequentially consistent atomic operation
	// before. It is a load when nobody sleeps.
	Ring()
	// ReadAt and WriteAt copy from and to a region that Map refused, without
	// the peer taking part, if the system lets this process. offset is from
	// the region's first byte. An error that cannot heal is a
	// *CapabilityError.
	ReadAt(into []byte, region RemoteRegion, offset uint64) error
	WriteAt(from []byte, region RemoteRegion, offset uint64) error
}

// A Reserver is a device whose memory can be had before it is backed: to back much memory takes seconds.
type Reserver interface {
	// ReserveMemory is AllocateMemory but for the pages: each is there when it is first touched, or
	// after BackMemory. A touch for which the machine has no page left ends the process.
	ReserveMemory(n int) ([]byte, error)
	// BackMemory backs memory of ReserveMemory with pages and returns how many bytes, from the first on,
	// have theirs. It looks at the context every few MiB; after its error the caller can go on with
	// the rest. It is an error wrapping [ErrMemory] if there is not that much.
	BackMemory(ctx context.Context, memory []byte) (backed int, err error)
}

// A Watcher is a device that notices the death of a peer without traffic.
type Watcher interface {
	// Watch calls lost once, from a goroutine of the device's, soon after the
	// device at address was closed or its process has ended, with the cause.
	// It returns an error if the peer cannot be watched. A peer that is gone
	// already is lost at once. stop ends the watch.
	Watch(address string, lost func(cause error)) (stop func(), err error)
}

// A Server is a device that the CPU moves, so that whoever polls it may have served a
// peer although nothing has completed here.
type Server interface {
	// Heard counts, as it likes, what has come from peers, and what has been sent to them
	// by polls. While it grows more is likely to come soon.
	Heard() uint64
	// Served counts what peers have asked of this side's memory and wait for: reads, atomics, and writes
	// that their side hears the completion of. Where it grows Heard does.
	Served() uint64
	// Pending tells whether something of this side's waits for room to leave, and goes on only in a poll.
	Pending() bool
	// Dwell says whether a poll that finds nothing looks several times for something of
	// the likeliest peer, which suits a rank that waits for nothing else. It tells how
	// often one looks from now on: once, where it is off or the device never dwells.
	Dwell(on bool) (looks int)
}

// A Meter is a device that counts what it sends.
type Meter interface {
	// Frames is how many messages, requests and answers have left for other devices. Acknowledgements by
	// themselves are none: how many there are depends on who sleeps when.
	Frames() uint64
}

// A Charger is a device in virtual time, whose caller says what its processor has done.
type Charger interface {
	// Copied charges the caller for copying n bytes.
	Copied(n int)
	// Takes is how long the caller's processor takes from now on for what takes as long as
	// work on one that nothing slows.
	Takes(work time.Duration) time.Duration
	// Work keeps the caller's processor busy for the limit, or until the Channel is rung
	// after the ticket, by which Sleep would end.
	Work(ticket uint32, limit time.Duration)
}

// A RingPoller is a device in virtual time whose caller says how many rings in its memory it is
// going to look at.
type RingPoller interface {
	// PollRings lets all come that the card has placed by the time when they are looked at,
	// and charges the caller for looking.
	PollRings(n int)
}

// A Severer is a queue pair that can be ended because its peer is taken for dead, which
// may be only stopped, or cut off, and come back.
type Severer interface {
	// Sever puts the queue pair in StateError. What has come of the peer is carried out;
	// after Sever nothing of it is any more. Completions are kept. The error of both sides is an
	// ErrDisconnected; see there.
	Sever()
}

// A CompletionChannel is where a rank sleeps while nothing that it waits for
// has come. Sleeping takes two steps, so that nothing is missed:
//
//	ticket := channel.Prepare()
//	if nothing has come yet {
//		channel.Sleep(ticket, limit)
//	}
//	channel.Finish()
//
// Several goroutines may sleep at once.
type CompletionChannel interface {
	// Prepare announces a sleeper. Every ring after it ends the Sleep with
	// its ticket. It is sequentially consistent with the loads that follow.
	Prepare() uint32
	// Sleep returns when the channel was rung after Prepare, or after limit
	// if that is not negative, or for no reason.
	Sleep(ticket uint32, limit time.Duration)
	// Finish takes the announcement back. Each Prepare has one.
	Finish()
	// Ring wakes all sleepers. It may be called by anyone in this process.
	Ring()
}
