package aggregate

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/internal/errtext"
)

// Kind is the kind of an operation.
type Kind uint8

// The kinds.
const (
	// Put writes its operand. Get reads.
	Put Kind = iota + 1
	Get
	// Accumulate combines the elements of its operand into those of the window. Fetch also returns their previous
	// values. A Fetch with reduce.NoOp has no operand.
	Accumulate
	Fetch
	// Swap is a compare-and-swap of one element. Its operand is the value to compare with, followed by the new value.
	// It returns the element's previous value.
	Swap
	// Notify adds 1 to the notification slot whose number is the offset.
	Notify
	kinds
)

// HeaderBytes is the length of a run's header, OffsetBytes that of an operation's offset.
const (
	HeaderBytes = 8
	OffsetBytes = 8
)

// MostWords returns how many accumulates of one element of at most a word fit a packet of room bytes, at least 1.
func MostWords(room int) int { return max((room-HeaderBytes)/wordOperation, 1) }

// MaxSize is the maximum number of bytes that one operation of a packet touches.
const MaxSize = 1<<16 - 8

// Most returns the maximum number of bytes that one operation can touch in a packet of room bytes. The operand must be
// no longer than that. The result is a multiple of 8. It is 0 if there is no room.
func Most(room int) int {
	return max(min(room-HeaderBytes-OffsetBytes, MaxSize), 0) &^ 7
}

// A Shape is what the operations of a run have in common.
type Shape struct {
	Kind    Kind
	Op      reduce.Op
	Element reduce.Kind
	// Size is the number of bytes that each operation touches, at most MaxSize.
	Size int
}

// Operand returns the length of each operation's operand, in bytes.
func (s *Shape) Operand() int {
	switch {
	case s.Kind == Get || s.Kind == Notify || s.Kind == Fetch && s.Op == reduce.NoOp:
		return 0
	case s.Kind == Swap:
		return 2 * s.Size
	}
	return s.Size
}

// Response returns the length of each operation's part of the response, in bytes.
func (s *Shape) Response() int {
	if s.Kind == Get || s.Kind == Fetch || s.Kind == Swap {
		return Padded(s.Size)
	}
	return 0
}

// Packed returns the number of bytes of a packet that each operation takes.
func (s *Shape) Packed() int { return OffsetBytes + Padded(s.Operand()) }

// Padded returns n rounded up to a multiple of 8.
func Padded(n int) int { return (n + 7) &^ 7 }

// ErrPacket reports a malformed packet.
var ErrPacket = errors.New("aggregate: malformed packet")

// encode writes the header of a run.
func (s *Shape) encode(header []byte, count int) {
	header[0], header[1], header[2], header[3] = byte(s.Kind), byte(s.Op), byte(s.Element), 0
	binary.LittleEndian.PutUint16(header[4:], uint16(s.Size))
	binary.LittleEndian.PutUint16(header[6:], uint16(count))
}

// decode reads the header of a run.
func (s *Shape) decode(header []byte) (count int) {
	*s = Shape{Kind(header[0]), reduce.Op(header[1]), reduce.Kind(header[2]), int(binary.LittleEndian.Uint16(header[4:]))}
	return int(binary.LittleEndian.Uint16(header[6:]))
}

// check returns the error of an invalid shape of a run.
func (s *Shape) check(header []byte) error {
	combines := s.Kind == Accumulate || s.Kind == Fetch
	switch {
	case s.Kind == 0 || s.Kind >= kinds:
		return fmt.Errorf("%w: no kind %d of operations, there are 1 to %d", ErrPacket, s.Kind, kinds-1)
	case header[3] != 0:
		return fmt.Errorf("%w: header % x, byte 3 must be zero", ErrPacket, header)
	case s.Size > MaxSize:
		return fmt.Errorf("%w: an operation of %s, at most %d are allowed", ErrPacket, errtext.Count(s.Size, "byte"), MaxSize)
	case !combines && s.Op != 0:
		return fmt.Errorf("%w: header % x, byte 1 must be zero for kind %d", ErrPacket, header, s.Kind)
	case !combines && s.Kind != Swap:
		if s.Element != 0 {
			return fmt.Errorf("%w: header % x, byte 2 must be zero for kind %d", ErrPacket, header, s.Kind)
		}
		if s.Kind == Notify && s.Size != 0 {
			return fmt.Errorf("%w: %s of a notification, which has none", ErrPacket, errtext.Count(s.Size, "byte"))
		}
	case !s.Element.Valid():
		return fmt.Errorf("%w: no kind %d of elements, there are 0 to %d", ErrPacket, uint8(s.Element), reduce.Kinds-1)
	case s.Kind == Swap && s.Size != s.Element.Size() || s.Size%s.Element.Size() != 0:
		return fmt.Errorf("%w: %s of %v for kind %d", ErrPacket, errtext.Count(s.Size, "byte"), s.Element, s.Kind)
	case combines && reduce.Supported(s.Element, s.Op) != nil:
		return fmt.Errorf("%w: %w", ErrPacket, reduce.Supported(s.Element, s.Op))
	}
	return nil
}

// Check returns the length of the response to a packet, or an ErrPacket if the packet is malformed.
func Check(packet []byte) (response int, err error) {
	var s Shape
	for len(packet) > 0 {
		if len(packet) < HeaderBytes {
			return 0, fmt.Errorf("%w: %s, a header has %d", ErrPacket, errtext.Count(len(packet), "byte"), HeaderBytes)
		}
		header := packet[:HeaderBytes]
		count := s.decode(header)
		if err := s.check(header); err != nil {
			return 0, err
		}
		body := count * s.Packed()
		if body > len(packet)-HeaderBytes {
			return 0, fmt.Errorf("%w: %s of %s in %d", ErrPacket, errtext.Count(count, "operation"), errtext.Count(s.Packed(), "byte"), len(packet)-HeaderBytes)
		}
		response += count * s.Response()
		packet = packet[HeaderBytes+body:]
	}
	return response, nil
}
