package verbs

import (
	"fmt"

	"github.com/onesided/rma/internal/errtext"
)

// CheckSend returns the length of a request in bytes, or an *ArgumentError if a device with these attributes cannot
// take it. It does not check regions: implementations of PostSend leave that to the completion.
func (a *Attributes) CheckSend(r *SendRequest) (length int, err error) {
	if r.Opcode > OpCompareSwap {
		return 0, a.refuse("PostSend: opcode %d is none of a send queue", r.Opcode)
	}
	if known := Signalled | Inline | Fence; r.Flags&^known != 0 {
		return 0, a.refuse("PostSend: flags %#x, known are %#x", r.Flags, known)
	}
	if len(r.Segments) > a.MaxSegments {
		return 0, a.refuse("PostSend: %s, at most %d are allowed", errtext.Count(len(r.Segments), "segment"), a.MaxSegments)
	}
	for i := range r.Segments {
		n := len(r.Segments[i].Memory)
		if n > a.MaxMessage-length {
			return 0, a.refuse("PostSend: more than %s", errtext.Count(a.MaxMessage, "byte"))
		}
		length += n
	}
	switch {
	case r.Flags&Inline != 0 && (length > a.MaxInline || r.Opcode >= OpRDMARead):
		return 0, a.refuse("PostSend: an inline request is a send or write of at most %s, this is opcode %d of %d", errtext.Count(a.MaxInline, "byte"), r.Opcode, length)
	case r.Opcode >= OpFetchAdd && (len(r.Segments) != 1 || length != 8):
		return 0, a.refuse("PostSend: an atomic has one segment of 8 bytes, this has %d of %d", len(r.Segments), length)
	}
	return length, nil
}

func (a *Attributes) refuse(format string, args ...any) error {
	return &ArgumentError{Device: a.Name, Text: fmt.Sprintf(format, args...)}
}
