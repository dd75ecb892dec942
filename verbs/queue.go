package verbs

// QueuePairConfig sizes a queue pair.
type QueuePairConfig struct {
	// SendQueue and ReceiveQueue take the completions. They may be the same.
	SendQueue, ReceiveQueue CompletionQueue
	// MaxSends and MaxReceives bound the requests that are outstanding.
	// Zero is 128.
	MaxSends, MaxReceives int
}

// A ConnectionRequest is a peer that wants a queue pair with this device.
type ConnectionRequest interface {
	// Hello is what the peer passed to Connect. Nothing vouches for it.
	Hello() []byte
	// Accept makes the queue pair. It is ready when Accept returns.
	Accept(config QueuePairConfig) (QueuePair, error)
	// Reject fails the peer's queue pair with the reason.
	Reject(reason string)
}

// State of a queue pair.
type State uint32

const (
	// StateConnecting: posted sends wait for the peer to accept.
	StateConnecting State = iota
	// StateReady: sends and receives are processed.
	StateReady
	// StateError: everything is flushed. It is final.
	StateError
)

// A QueuePair is one end of a reliable connection. Its methods may be called
// from any goroutine; requests of one call stay together and in order.
type QueuePair interface {
	// Number is unique among the device's live queue pairs; completions carry it.
	Number() uint32
	// State is the state now. It never goes back.
	State() State
	// Err says why the queue pair is in StateError, nil in other states.
	Err() error
	// PostSend posts requests in order and returns how many it took. All
	// were taken unless err is not nil: ErrQueueFull if more than MaxSends
	// would be outstanding (an unsignalled request is outstanding until a
	// later one completes), or an error saying what is wrong with
	// requests[n]: an opcode or a flag that it cannot have, too many segments
	// or bytes, Inline of too much or of what cannot be inline. Those before
	// it run, those behind it were not taken. What only the region or the
	// peer can tell is told by the completion. In StateError requests are
	// taken, and flushed. Segments belong to the device until the request
	// completes, but those of Inline requests only until PostSend returns;
	// the slices that hold requests and segments are the caller's again at return.
	PostSend(requests []SendRequest) (n int, err error)
	// PostReceive posts receives in order; see PostSend.
	PostReceive(requests []ReceiveRequest) (n int, err error)
	// Close destroys the queue pair. The peer's goes to StateError; see ErrDisconnected.
	// Completions not yet polled are lost. A second Close returns nil.
	Close() error
}

// A CompletionQueue collects completions.
type CompletionQueue interface {
	// Poll takes up to len(into) completions, oldest first, and returns how
	// many. It never blocks and drives the device as far as it needs driving,
	// also with an empty into.
	Poll(into []Completion) int
	// Close destroys the queue. Its queue pairs have been closed, or it fails; it takes
	// no other: ErrClosed. A second Close returns nil.
	Close() error
}

// Opcode of a work request.
type Opcode uint8

const (
	// OpSend delivers its segments into the peer's next receive.
	OpSend Opcode = iota
	// OpSendImmediate does, with 32 bits that the receive's completion carries.
	OpSendImmediate
	// OpRDMAWrite places its segments in remote memory. In memory of AllocateMemory, 8 bytes
	// at an address that is a multiple of 8 are placed as by an atomic store: who loads them
	// atomically there sees all of them or none, and with them all that this queue pair has
	// placed before. It wakes nobody.
	OpRDMAWrite
	// OpRDMAWriteImmediate does, and then consumes a receive of the peer,
	// whose completion carries 32 bits and the length.
	OpRDMAWriteImmediate
	// OpRDMARead fills its segments from remote memory.
	OpRDMARead
	// OpFetchAdd adds Operand to 8 aligned bytes of remote memory, native
	// byte order, and puts the old value in its one 8-byte segment. Other
	// segments and addresses are refused when it is posted, or it completes
	// with an error of the remote side.
	OpFetchAdd
	// OpCompareSwap sets 8 aligned bytes of remote memory to Operand if they
	// equal Compare, and puts the old value in its one 8-byte segment.
	OpCompareSwap
	// OpReceive and OpReceiveImmediate appear in completions of receives:
	// without and with immediate data.
	OpReceive
	OpReceiveImmediate
)

var opcodeText = [...]string{
	OpSend: "message", OpSendImmediate: "message with immediate", OpRDMAWrite: "write",
	OpRDMAWriteImmediate: "write with immediate", OpRDMARead: "read", OpFetchAdd: "fetch-add",
	OpCompareSwap: "compare-swap", OpReceive: "receive", OpReceiveImmediate: "receive with immediate",
}

// String is what a request with the opcode is called.
func (o Opcode) String() string {
	if int(o) < len(opcodeText) {
		return opcodeText[o]
	}
	return "request"
}

// Flags of a send request.
type Flags uint8

const (
	// Signalled asks for a completion. Failures complete anyway.
	Signalled Flags = 1 << iota
	// Inline lets the device copy the segments while posting: they need no
	// region and are the caller's again when PostSend returns. At most
	// Attributes.MaxInline bytes; sends and writes only.
	Inline
	// Fence holds the request back until earlier reads and atomics completed.
	Fence
)

// A Segment is one entry of a scatter/gather list.
type Segment struct {
	// Memory lies within the region LKey names.
	Memory []byte
	LKey   uint32
}

// A SendRequest is a work request for the send queue.
type SendRequest struct {
	// ID comes back in the completion.
	ID       uint64
	Opcode   Opcode
	Flags    Flags
	Segments []Segment
	// RemoteAddress and RKey are the target of writes, reads and atomics.
	// RemoteAddress counts as RemoteRegion.Address does.
	RemoteAddress uint64
	RKey          uint32
	// Immediate goes with OpSendImmediate and OpRDMAWriteImmediate.
	Immediate uint32
	// Operand is the summand or the new value, Compare the expected one.
	Operand, Compare uint64
}

// A ReceiveRequest is a work request for the receive queue. A message longer
// than its segments completes with StatusLocalLength here and
// StatusRemoteInvalid at the sender.
type ReceiveRequest struct {
	ID       uint64
	Segments []Segment
}

// A Completion tells how a work request ended.
type Completion struct {
	ID uint64
	// QueuePair is the number of the queue pair.
	QueuePair uint32
	Status    Status
	Opcode    Opcode
	// Bytes received, for receives.
	Bytes uint32
	// Immediate is set for OpReceiveImmediate.
	Immediate uint32
}
