package tcp

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrProtocol reports that the peer sent what this protocol does not allow.
var ErrProtocol = errors.New("tcp: protocol violation")

// A frame is a header, little-endian, and length bytes of payload. Every header begins with:
//
//	 0 version u8    1 kind u8    2 flags u8    3 zero
//	 4 length u32    payload that follows the header
//	 8 acked u32     all requests of the peer up to this one were executed here
//	12 granted u32   how many receives were ever posted here
//
// The fields of the kind follow, in this order and without gaps. rules lists them:
//
//	request u32     the requester's number of the request, consecutive from 1
//	total u32       the length of the whole send, write or read
//	immediate u32   of a write with immediate, and of a send that has flagImmediate
//	rkey u32
//	address u64     of the request's first byte
//	operand u64     see below
//	compare u64     of a compare and swap
//	padding         zeros, of a hello and of a reject, up to paddedSize bytes
//
// So an acknowledgement has a header of 16 bytes, a read response one of 20, a send one of 24, a read or a write one of
// 36, and none is longer than 48.
//
// operand is one of:
//
//   - the summand or new value of an atomic;
//   - the old value of its response;
//   - the status of a request's rejection;
//   - the reason of a bye.
//
// Numbers and counts wrap around.
type frame struct {
	kind      kind
	flags     byte
	length    uint32
	acked     uint32
	granted   uint32
	request   uint32
	total     uint32
	immediate uint32
	rkey      uint32
	address   uint64
	operand   uint64
	compare   uint64
}

const (
	// version is the version of the frames. In version 1 each header had all fields, in 48 bytes.
	version = 2
	// commonSize is the length of the fields that every header has, maxHeader that of the longest header.
	commonSize = 16
	maxHeader  = 48
	// paddedSize is the length of the header of a hello and of a reject in every version, so that a peer of another
	// version reads the whole of it, and learns the version from the first byte.
	paddedSize = 48
	// immediateSize is what flagImmediate adds to the header of a send.
	immediateSize = 4
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

// fields are the fields of a header, beside those that every header has.
type fields byte

const (
	fieldRequest fields = 1 << iota
	fieldTotal
	fieldImmediate
	// fieldRemote is rkey and address.
	fieldRemote
	fieldOperand
	fieldCompare
)

// rules are the size and the fields of a kind's header, the flags that it may have, and the longest payload.
var rules = [kinds]struct {
	name      string
	size      int
	fields    fields
	flags     byte
	maxLength uint32
}{
	kindHello:            {"hello", paddedSize, 0, 0, maxHelloPayload},
	kindAccept:           {"accept", commonSize, 0, 0, 0},
	kindReject:           {"reject", paddedSize, 0, 0, maxReason},
	kindSend:             {"send", 24, fieldRequest | fieldTotal, flagSignalled | flagImmediate, maxPayload},
	kindWrite:            {"write", 36, fieldRequest | fieldTotal | fieldRemote, flagSignalled, maxPayload},
	kindWriteImmediate:   {"write with immediate", 40, fieldRequest | fieldTotal | fieldImmediate | fieldRemote, flagSignalled, maxPayload},
	kindRead:             {"read", 36, fieldRequest | fieldTotal | fieldRemote, 0, 0},
	kindFetchAdd:         {"fetch and add", 40, fieldRequest | fieldRemote | fieldOperand, 0, 0},
	kindCompareSwap:      {"compare and swap", 48, fieldRequest | fieldRemote | fieldOperand | fieldCompare, 0, 0},
	kindReadResponse:     {"read response", 20, fieldRequest, 0, maxPayload},
	kindAtomicResponse:   {"atomic response", 28, fieldRequest | fieldOperand, 0, 0},
	kindAcknowledge:      {"acknowledgement", commonSize, 0, 0, 0},
	kindRequestRejection: {"request rejection", 28, fieldRequest | fieldOperand, 0, 0},
	kindPing:             {"ping", commonSize, 0, 0, 0},
	kindPong:             {"pong", commonSize, 0, 0, 0},
	kindBye:              {"bye", 24, fieldOperand, 0, 0},
}

func (k kind) String() string {
	if k == 0 || k >= kinds {
		return fmt.Sprintf("kind %d", byte(k))
	}
	return rules[k].name
}

// layout returns the size of the header and the fields that it has.
func (f *frame) layout() (size int, has fields) {
	rule := &rules[f.kind]
	if f.flags&flagImmediate != 0 {
		return rule.size + immediateSize, rule.fields | fieldImmediate
	}
	return rule.size, rule.fields
}

// size returns the size of the header.
func (f *frame) size() int {
	size, _ := f.layout()
	return size
}

// encode writes the header to into, which has room for it. Fields that the header does not have are ignored.
func (f *frame) encode(into []byte) {
	_ = into[commonSize-1]
	into[0], into[1], into[2], into[3] = version, byte(f.kind), f.flags, 0
	binary.LittleEndian.PutUint32(into[4:], f.length)
	binary.LittleEndian.PutUint32(into[8:], f.acked)
	binary.LittleEndian.PutUint32(into[12:], f.granted)
	size, has := f.layout()
	into = into[commonSize:size]
	if has&fieldRequest != 0 {
		into = put32(into, f.request)
	}
	if has&fieldTotal != 0 {
		into = put32(into, f.total)
	}
	if has&fieldImmediate != 0 {
		into = put32(into, f.immediate)
	}
	if has&fieldRemote != 0 {
		into = put64(put32(into, f.rkey), f.address)
	}
	if has&fieldOperand != 0 {
		into = put64(into, f.operand)
	}
	if has&fieldCompare != 0 {
		into = put64(into, f.compare)
	}
	clear(into) // the padding
}

func put32(into []byte, word uint32) (rest []byte) {
	binary.LittleEndian.PutUint32(into, word)
	return into[4:]
}

func put64(into []byte, word uint64) (rest []byte) {
	binary.LittleEndian.PutUint64(into, word)
	return into[8:]
}

// decode reads the header at the start of from into f, which is zero, and returns its size. It makes the checks that do
// not depend on the connection. If from holds only part of the header, size is 0. f then has the common fields if from
// has commonSize bytes, and is unchanged otherwise.
func (f *frame) decode(from []byte) (size int, err error) {
	if len(from) < commonSize {
		return 0, nil
	}
	f.kind, f.flags = kind(from[1]), from[2]
	f.length = binary.LittleEndian.Uint32(from[4:])
	f.acked = binary.LittleEndian.Uint32(from[8:])
	f.granted = binary.LittleEndian.Uint32(from[12:])
	if from[0] != version || f.kind >= kinds {
		return 0, f.malformed(from)
	}
	if rule := &rules[f.kind]; f.flags&^rule.flags != 0 || from[3] != 0 || f.length > rule.maxLength || rule.size == 0 {
		return 0, f.malformed(from)
	}
	size, has := f.layout()
	if len(from) < size {
		return 0, nil
	}
	rest := from[commonSize:size]
	if has&fieldRequest != 0 {
		f.request, rest = binary.LittleEndian.Uint32(rest), rest[4:]
	}
	if has&fieldTotal != 0 {
		f.total, rest = binary.LittleEndian.Uint32(rest), rest[4:]
	}
	if has&fieldImmediate != 0 {
		f.immediate, rest = binary.LittleEndian.Uint32(rest), rest[4:]
	}
	if has&fieldRemote != 0 {
		f.rkey, f.address, rest = binary.LittleEndian.Uint32(rest), binary.LittleEndian.Uint64(rest[4:]), rest[12:]
	}
	if has&fieldOperand != 0 {
		f.operand, rest = binary.LittleEndian.Uint64(rest), rest[8:]
	}
	if has&fieldCompare != 0 {
		f.compare, rest = binary.LittleEndian.Uint64(rest), rest[8:]
	}
	for _, b := range rest {
		if b != 0 {
			return 0, f.malformed(from)
		}
	}
	return size, nil
}

// malformed returns what is wrong with the header at the start of from. It is apart from decode, which is faster without
// the variables of errors.
func (f *frame) malformed(from []byte) error {
	rule := &rules[min(f.kind, kinds-1)]
	switch {
	case from[0] != version:
		return fmt.Errorf("%w: a frame of version %d, this side speaks %d", ErrProtocol, from[0], version)
	case f.kind == 0 || f.kind >= kinds:
		return fmt.Errorf("%w: a frame of kind %d, known are 1 to %d", ErrProtocol, from[1], kinds-1)
	case f.flags&^rule.flags != 0 || from[3] != 0:
		return fmt.Errorf("%w: %v frame with flags %#x and %#x, allowed are %#x and 0", ErrProtocol, f.kind, f.flags, from[3], rule.flags)
	case f.length > rule.maxLength:
		return fmt.Errorf("%w: %v frame with a payload of %d bytes, at most %d are allowed", ErrProtocol, f.kind, f.length, rule.maxLength)
	}
	return fmt.Errorf("%w: %v frame whose padding is not zero", ErrProtocol, f.kind)
}
