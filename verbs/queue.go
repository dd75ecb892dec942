package verbs

// A QueuePairConfig sizes a queue pair.
type QueuePairConfig struct {
	// SendQueue and ReceiveQueue receive the completions. They may be the same queue.
	SendQueue, ReceiveQueue CompletionQueue
	// MaxSends and MaxReceives bound the outstanding requests. Zero means 128.
	MaxSends, MaxReceives int
}

// A ConnectionRequest is a peer's request for a queue pair with this device.
type ConnectionRequest interface {
	// Hello returns what the peer passed to Connect. It is not authenticated.
	Hello() []byte
	// Accept makes the queue pair, which is ready when Accept returns.
	Accept(config QueuePairConfig) (QueuePair, error)
	// Reject fails the peer's queue pair with the reason.
	Reject(reason string)
}

// State is the state of a queue pair.
type State uint32

const (
	// StateConnecting: posted sends wait for the peer to accept.
	StateConnecting State = iota
	// StateReady: sends and receives are processed.
	StateReady
	// StateError: everything is flushed. It is final.
	StateError
)

// A QueuePair is one end of a reliable connection. Its methods may be called from any goroutine. The requests of one
// call stay together and in order.
type QueuePair interface {
	// Number returns the queue pair's number, which is unique among the device's live queue pairs. Completions carry
	// it.
	Number() uint32
	// State returns the current state. It never goes back. It may still be StateConnecting when the first requests
	// have completed: the other side has accepted, but not on all rails yet.
	State() State
	// Err returns why the queue pair is in StateError, and nil in other states.
	Err() error
	// PostSend posts requests in order and returns the number of requests taken. It takes all of them unless it returns
	// an error:
	//
	//   - ErrQueueFull if more than MaxSends requests would be outstanding. An unsignalled request is outstanding until
	//     a later request completes.
	//   - An *ArgumentError that describes what is wrong with requests[n]: an invalid opcode or flag, too many segments
	//     or bytes, or an invalid use of Inline.
	//
	// The requests before requests[n] are executed; it and the later ones were not taken. Errors that depend on the
	// region or on the peer are reported by the completion. In StateError requests are taken and flushed.
	//
	// Segments belong to the device until the request completes, those of Inline requests only until PostSend returns.
	// The slices of requests and segments belong to the caller again at return.
	PostSend(requests []SendRequest) (n int, err error)
	// PostReceive posts receives in order, in the same way as PostSend.
	PostReceive(requests []ReceiveRequest) (n int, err error)
	// Close destroys the queue pair. The peer's goes to StateError; see [ErrDisconnected]. Completions that were not
	// polled are lost. A second Close returns nil.
	Close() error
}

// A CompletionQueue collects completions.
type CompletionQueue interface {
	// Poll stores at most len(into) completions in into, oldest first, and returns their number. It never blocks. It
	// also drives the device as far as the device needs that, even with an empty into.
	Poll(into []Completion) int
	// Close destroys the queue. It returns an error and changes nothing while a queue pair of the queue is open.
	// Connect and Accept return ErrClosed for a closed queue. A second Close returns nil.
	Close() error
}

// Opcode is the kind of a work request.
type Opcode uint8

const (
	// OpSend delivers its segments into the peer's next receive.
	OpSend Opcode = iota
	// OpSendImmediate is OpSend with 32 bits that the receive's completion carries.
	OpSendImmediate
	// OpRDMAWrite places its segments in remote memory. It does not wake the peer. In memory of AllocateMemory, each 8
	// bytes at a multiple of 8 are placed as by an atomic store. An atomic load there sees all of them or none. After
	// it has seen them, it sees everything that this queue pair placed before.
	OpRDMAWrite
	// OpRDMAWriteImmediate is OpRDMAWrite that then consumes a receive of the peer. The receive's completion carries 32
	// bits and the length.
	OpRDMAWriteImmediate
	// OpRDMARead fills its segments from remote memory.
	OpRDMARead
	// OpFetchAdd adds Operand to 8 aligned bytes of remote memory, in native byte order, and stores the old value in
	// its one 8-byte segment. Other segments and addresses are rejected when the request is posted, or by a remote
	// error at completion.
	OpFetchAdd
	// OpCompareSwap sets 8 aligned bytes of remote memory to Operand if they equal Compare, and stores the old value in
	// its one 8-byte segment.
	OpCompareSwap
	// OpReceive and OpReceiveImmediate appear in completions of receives, without and with immediate data.
	OpReceive
	OpReceiveImmediate
)

var opcodeText = [...]string{
	OpSend: "message", OpSendImmediate: "message with immediate", OpRDMAWrite: "write",
	OpRDMAWriteImmediate: "write with immediate", OpRDMARead: "read", OpFetchAdd: "fetch-add",
	OpCompareSwap: "compare-swap", OpReceive: "receive", OpReceiveImmediate: "receive with immediate",
}

// String returns the name of a request with the opcode.
func (o Opcode) String() string {
	if int(o) < len(opcodeText) {
		return opcodeText[o]
	}
	return "request"
}

// Flags are the flags of a send request.
type Flags uint8

const (
	// Signalled requests a completion. A failed request completes in any case.
	Signalled Flags = 1 << iota
	// Inline makes the device copy the segments while posting. They need no region and belong to the caller again when
	// PostSend returns. Inline is for sends and writes of at most Attributes.MaxInline bytes.
	Inline
	// Fence delays the request until earlier reads and atomics have completed.
	Fence
)

// A Segment is one entry of a scatter/gather list.
type Segment struct {
	// Memory lies within the region that LKey names.
	Memory []byte
	LKey   uint32
}

// A SendRequest is a work request for the send queue.
type SendRequest struct {
	// ID is returned in the completion.
	ID       uint64
	Opcode   Opcode
	Flags    Flags
	Segments []Segment
	// RemoteAddress and RKey are the target of writes, reads and atomics. RemoteAddress is numbered as
	// RemoteRegion.Address.
	RemoteAddress uint64
	RKey          uint32
	// Immediate is for OpSendImmediate and OpRDMAWriteImmediate.
	Immediate uint32
	// Operand is the summand or the new value, Compare the expected value.
	Operand, Compare uint64
}

// A ReceiveRequest is a work request for the receive queue. A message longer than its segments completes with
// StatusLocalLength here and StatusRemoteInvalid at the sender.
type ReceiveRequest struct {
	ID       uint64
	Segments []Segment
}

// A Completion reports how a work request ended.
type Completion struct {
	ID uint64
	// QueuePair is the number of the queue pair.
	QueuePair uint32
	Status    Status
	Opcode    Opcode
	// Bytes is the number of bytes received, for receives.
	Bytes uint32
	// Immediate is set for OpReceiveImmediate.
	Immediate uint32
}
