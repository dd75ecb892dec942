package aggregate

import "encoding/binary"

// A Writer packs operations into memory that it is given. Its zero value has no room.
type Writer struct {
	packet []byte
	// header is where that of the last run is, if count is not 0.
	header int
	shape  Shape
	count  int
	packed int

	operations        int
	answer, answering int
}

// Begin begins a packet in memory, which is on an 8-byte boundary, for an answer of at most
// so many bytes.
func (w *Writer) Begin(memory []byte, answer int) {
	*w = Writer{packet: memory[:0:len(memory)], answering: answer}
}

// Packet is what has been packed.
func (w *Writer) Packet() []byte { return w.packet }

// Operations is how many operations that is, and Answer the length of its answer.
func (w *Writer) Operations() int { return w.operations }

// Answer is the length of the packet's answer, in bytes.
func (w *Writer) Answer() int { return w.answer }

// Add packs an operation at an offset of the window and gives the place of its operand,
// which the caller fills. It is not ok if there is no room.
func (w *Writer) Add(shape *Shape, offset uint64) (operand []byte, ok bool) {
	at := len(w.packet)
	begins := w.count == 0 || w.shape != *shape || w.count == 1<<16-1
	if begins {
		packed, answer := shape.Packed(), shape.Answer()
		if cap(w.packet)-at < HeaderBytes+packed || w.answer+answer > w.answering {
			return nil, false
		}
		w.shape, w.header, w.count, w.packed = *shape, at, 0, packed
		at += HeaderBytes
	}
	answer := w.shape.Answer()
	if cap(w.packet)-at < w.packed || w.answer+answer > w.answering {
		return nil, false
	}
	w.answer += answer
	w.packet = w.packet[:at+w.packed]
	w.count++
	w.operations++
	if begins {
		shape.encode(w.packet[w.header:], 1)
	} else {
		binary.LittleEndian.PutUint16(w.packet[w.header+6:], uint16(w.count))
	}
	body := w.packet[at : at+w.packed]
	binary.LittleEndian.PutUint64(body, offset)
	operand = body[OffsetBytes:]
	if n := shape.Operand(); n != len(operand) {
		clear(operand[n:])
		operand = operand[:n]
	}
	return operand, true
}
