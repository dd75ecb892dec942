package aggregate

import "encoding/binary"

// A Reader takes a packet apart that Check has found whole.
type Reader struct{ rest []byte }

// NewReader begins with the first run.
func NewReader(packet []byte) Reader { return Reader{packet} }

// A Run is operations of one Shape.
type Run struct {
	Shape
	// Count is how many there are, Stride how far their bodies are apart: each is an
	// offset and an operand.
	Count, Stride int
	Bodies        []byte
}

// Next gives the next run, if there is one.
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

// Operation gives the offset and the operand of operation i.
func (r *Run) Operation(i int) (offset uint64, operand []byte) {
	body := r.Bodies[i*r.Stride:][:r.Stride:r.Stride]
	return binary.LittleEndian.Uint64(body), body[OffsetBytes:][:r.Operand()]
}
