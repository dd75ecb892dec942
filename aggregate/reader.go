package aggregate

import "encoding/binary"

// A Reader takes apart a packet that Check has accepted.
type Reader struct{ rest []byte }

// NewReader returns a Reader at the first run of the packet.
func NewReader(packet []byte) Reader { return Reader{packet} }

// A Run is the operations of one Shape.
type Run struct {
	Shape
	// Count is the number of operations. Stride is the distance of their bodies in Bodies, in bytes. A body is an
	// offset and an operand.
	Count, Stride int
	Bodies        []byte
}

// Next returns the next run. It returns false after the last run.
func (r *Reader) Next() (Run, bool) {
	if len(r.rest) == 0 {
		return Run{}, false
	}
	var run Run
	run.Count = run.decode(r.rest)
	run.Stride = run.Packed()
	end := HeaderBytes + run.Count*run.Stride
	run.Bodies = r.rest[HeaderBytes:end:end]
	r.rest = r.rest[end:]
	return run, true
}

// Operation returns the offset and the operand of operation i.
func (r *Run) Operation(i int) (offset uint64, operand []byte) {
	body := r.Bodies[i*r.Stride:][:r.Stride:r.Stride]
	return binary.LittleEndian.Uint64(body), body[OffsetBytes:][:r.Operand()]
}
