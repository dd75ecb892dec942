package aggregate

import "encoding/binary"

// A Writer packs operations into memory that Begin gives it. The zero value has no room.
type Writer struct {
	packet []byte
	// The last run, if count is not 0, has count operations of shape. Its header is at header. packed, reads and
	// operands are the bytes of one operation in the packet, in the response, and of its operand.
	shape                   Shape
	header, count           int
	packed, reads, operands int

	operations            int
	response, maxResponse int
}

// mostOperations is the maximum number of operations of a run.
const mostOperations = 1<<16 - 1

// Begin begins a packet in memory, which is on an 8-byte boundary. The response to the packet may have at
// most response bytes.
func (w *Writer) Begin(memory []byte, response int) {
	*w = Writer{packet: memory[:0:len(memory)], maxResponse: response}
}

// Packet returns what has been packed.
func (w *Writer) Packet() []byte { return w.packet }

// Operations returns the number of operations packed.
func (w *Writer) Operations() int { return w.operations }

// Add packs an operation at an offset of the window and returns the memory of its operand, of shape.Operand() bytes,
// which the caller fills. It is empty for an operation without an operand, such as a Get or a Notify. Add writes the
// zeroes after the operand. ok is false if there is no room.
func (w *Writer) Add(shape *Shape, offset uint64) (operand []byte, ok bool) {
	if (w.count == 0 || w.shape != *shape || w.count == mostOperations) && !w.begin(shape) {
		return nil, false
	}
	at, end := len(w.packet), len(w.packet)+w.packed
	if end > cap(w.packet) || w.response+w.reads > w.maxResponse {
		return nil, false
	}
	w.packet = w.packet[:end]
	w.count++
	w.operations++
	w.response += w.reads
	binary.LittleEndian.PutUint16(w.packet[w.header+6:], uint16(w.count))
	body := w.packet[at:]
	binary.LittleEndian.PutUint64(body, offset)
	operand = body[OffsetBytes:]
	if n := w.operands; n != len(operand) {
		clear(operand[n:])
		operand = operand[:n]
	}
	return operand, true
}

// AddWords packs accumulates of one element of at most a word. words holds an offset and an operand for each,
// alternately. An operand holds the element in its first bytes in memory order, and zeroes after it. AddWords returns
// the number of words that it packed.
func (w *Writer) AddWords(shape *Shape, words []uint64) int {
	if (w.count == 0 || w.shape != *shape || w.count == mostOperations) && !w.begin(shape) {
		return 0
	}
	at := len(w.packet)
	count := min(len(words)/2, (cap(w.packet)-at)/wordOperation, mostOperations-w.count)
	w.packet = w.packet[:at+count*wordOperation]
	w.count += count
	w.operations += count
	binary.LittleEndian.PutUint16(w.packet[w.header+6:], uint16(w.count))
	words = words[:2*count]
	for i, body := 0, w.packet[at:]; i+1 < len(words) && len(body) >= wordOperation; i, body = i+2, body[wordOperation:] {
		binary.LittleEndian.PutUint64(body, words[i])
		binary.NativeEndian.PutUint64(body[OffsetBytes:], words[i+1])
	}
	return len(words)
}

// wordOperation is the length of an operation whose operand is at most a word.
const wordOperation = OffsetBytes + 8

// begin begins a run if there is room for one operation of it.
func (w *Writer) begin(shape *Shape) bool {
	at, packed, reads := len(w.packet), shape.Packed(), shape.Response()
	if at+HeaderBytes+packed > cap(w.packet) || w.response+reads > w.maxResponse {
		return false
	}
	w.packet = w.packet[:at+HeaderBytes]
	shape.encode(w.packet[at:], 0)
	w.shape, w.header, w.count = *shape, at, 0
	w.packed, w.reads, w.operands = packed, reads, shape.Operand()
	return true
}
