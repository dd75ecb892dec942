package tcp

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrProtocol reports that the peer sent what this protocol does not allow.
var ErrProtocol = errors.New("tcp: protocol violation")

// A frame is a header of headerSize bytes, little-endian, and length bytes of payload:
//
//	 0 version u8    1 kind u8    2 flags u8    3 zero
//	 4 length u32    payload that follows
//	 8 request u32   the requester's number of the request, consecutive from 1
//	12 acked u32     all requests of the peer up to this one were executed here
//	16 granted u32   how many receives were ever posted here
//	20 rkey u32
//	24 address u64   of the request's first byte
//	32 operand u64   see below
//	40 compare u64   of a compare and swap
//
// operand is one of:
//
//   - the summand or new value of an atomic;
//   - the old value of its response;
//   - the length of a read;
//   - the total length of a send or write in the low half, with the immediate data in the high half;
//   - the status of a request's rejection;
//   - the reason of a bye.
//
// Numbers and counts wrap around.
type frame struct {
	kind    kind
	flags   byte
	length  uint32
	request uint32
	acked   uint32
	granted uint32
	rkey    uint32
	address uint64
	operand uint64
	compare uint64
}

const (
	// version is the version of the frames. Version 1 is the first.
	version    = 1
	headerSize = 48
	// maxPayload is the maximum payload of a frame. A longer message goes in several frames, so that frames of the
	// other direction wait for at most one of them.
	maxPayload = 256 << 10
	// maxReads is the maximum number of unanswered reads and atomics of a connection.
	maxReads = 64
	// maxReason is the maximum length of the text of a rejection, in bytes.
	maxReason = 512
)

type kind byte

const (
	kindHello kind = 1 + iota
	kindAccept
	kindReject
	kindSend
	kindWrite
	kindWriteImmediate
	kindRead
	kindFetchAdd
	kindCompareSwap
	kindReadResponse
	kindAtomicResponse
	// kindAcknowledge only carries acked and granted, which all frames have.
	kindAcknowledge
	// kindRequestRejection is the last response: to the request that was not executed.
	kindRequestRejection
	kindPing
	// kindPong responds to a ping, and so acknowledges all requests before it.
	kindPong
	// kindBye ends a connection in order.
	kindBye
	kinds
)

const (
	// flagSignalled requests an acknowledgement.
	flagSignalled = 1 << iota
	// flagImmediate marks a send that has immediate data.
	flagImmediate
)

// Reasons of a bye.
const (
	byeFailed = iota
	byeClosed
	// byeSevered: the sender presumes its peer dead.
	byeSevered
)

// rules are the fields that the header of a kind may have.
var rules = [kinds]struct {
	name      string
	flags     byte
	maxLength uint32
}{
	kindHello:            {"hello", 0, maxHelloPayload},
	kindAccept:           {"accept", 0, 0},
	kindReject:           {"reject", 0, maxReason},
	kindSend:             {"send", flagSignalled | flagImmediate, maxPayload},
	kindWrite:            {"write", flagSignalled, maxPayload},
	kindWriteImmediate:   {"write with immediate", flagSignalled, maxPayload},
	kindRead:             {"read", 0, 0},
	kindFetchAdd:         {"fetch and add", 0, 0},
	kindCompareSwap:      {"compare and swap", 0, 0},
	kindReadResponse:     {"read response", 0, maxPayload},
	kindAtomicResponse:   {"atomic response", 0, 0},
	kindAcknowledge:      {"acknowledgement", 0, 0},
	kindRequestRejection: {"request rejection", 0, 0},
	kindPing:             {"ping", 0, 0},
	kindPong:             {"pong", 0, 0},
	kindBye:              {"bye", 0, 0},
}

func (k kind) String() string {
	if k == 0 || k >= kinds {
		return fmt.Sprintf("kind %d", byte(k))
	}
	return rules[k].name
}

// messageOperand returns the operand of a send or write.
func messageOperand(total int, immediate uint32) uint64 {
	return uint64(uint32(total)) | uint64(immediate)<<32
}

func (f *frame) total() int        { return int(uint32(f.operand)) }
func (f *frame) immediate() uint32 { return uint32(f.operand >> 32) }

// encode writes the header to into, which has room for it.
func (f *frame) encode(into []byte) {
	_ = into[headerSize-1]
	into[0], into[1], into[2], into[3] = version, byte(f.kind), f.flags, 0
	binary.LittleEndian.PutUint32(into[4:], f.length)
	binary.LittleEndian.PutUint32(into[8:], f.request)
	binary.LittleEndian.PutUint32(into[12:], f.acked)
	binary.LittleEndian.PutUint32(into[16:], f.granted)
	binary.LittleEndian.PutUint32(into[20:], f.rkey)
	binary.LittleEndian.PutUint64(into[24:], f.address)
	binary.LittleEndian.PutUint64(into[32:], f.operand)
	binary.LittleEndian.PutUint64(into[40:], f.compare)
}

// decode reads the header at the start of from. It makes the checks that do not depend on the connection.
func (f *frame) decode(from []byte) error {
	_ = from[headerSize-1]
	if from[0] != version {
		return fmt.Errorf("%w: a frame of version %d, this side speaks %d", ErrProtocol, from[0], version)
	}
	f.kind, f.flags = kind(from[1]), from[2]
	f.length = binary.LittleEndian.Uint32(from[4:])
	f.request = binary.LittleEndian.Uint32(from[8:])
	f.acked = binary.LittleEndian.Uint32(from[12:])
	f.granted = binary.LittleEndian.Uint32(from[16:])
	f.rkey = binary.LittleEndian.Uint32(from[20:])
	f.address = binary.LittleEndian.Uint64(from[24:])
	f.operand = binary.LittleEndian.Uint64(from[32:])
	f.compare = binary.LittleEndian.Uint64(from[40:])
	if f.kind == 0 || f.kind >= kinds {
		return fmt.Errorf("%w: a frame of kind %d, known are 1 to %d", ErrProtocol, from[1], kinds-1)
	}
	rule := &rules[f.kind]
	if f.flags&^rule.flags != 0 || from[3] != 0 {
		return fmt.Errorf("%w: %v frame with flags %#x and %#x, allowed are %#x and 0", ErrProtocol, f.kind, f.flags, from[3], rule.flags)
	}
	if f.length > rule.maxLength {
		return fmt.Errorf("%w: %v frame with a payload of %d bytes, at most %d are allowed", ErrProtocol, f.kind, f.length, rule.maxLength)
	}
	return nil
}
