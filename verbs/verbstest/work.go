package verbstest

import "github.com/onesided/rma/verbs"

// A segment names memory of an area.
type segment struct {
	Area     int
	From, To int
}

// A work is a send request whose segments are named, or whose data comes with it.
type work struct {
	verbs.SendRequest // Segments are set on this side only
	Named             []segment
	// Data is gathered from memory that no region covers, in pieces of the lengths Pieces, and overwritten as soon as
	// it is posted. It is for Inline.
	Data   []byte
	Pieces []int
}

// A slot is a receive request whose segments are named.
type slot struct {
	ID    uint64
	Named []segment
}

// target returns a request with the remote address of an offset in the area.
func (a *area) target(offset int) verbs.SendRequest {
	return verbs.SendRequest{RemoteAddress: a.Address + uint64(offset), RKey: a.RKey}
}

// write, read and the others return signalled works on the area.

func (a *area) write(id uint64, offset int, from ...segment) work {
	return a.work(id, verbs.OpRDMAWrite, offset, from...)
}

func (a *area) read(id uint64, offset int, into ...segment) work {
	return a.work(id, verbs.OpRDMARead, offset, into...)
}

func (a *area) fetchAdd(id uint64, offset int, delta uint64, into segment) work {
	w := a.work(id, verbs.OpFetchAdd, offset, into)
	w.Operand = delta
	return w
}

func (a *area) compareSwap(id uint64, offset int, old, new uint64, into segment) work {
	w := a.work(id, verbs.OpCompareSwap, offset, into)
	w.Compare, w.Operand = old, new
	return w
}

func (a *area) writeImmediate(id uint64, offset int, immediate uint32, from ...segment) work {
	w := a.work(id, verbs.OpRDMAWriteImmediate, offset, from...)
	w.Immediate = immediate
	return w
}

func (a *area) work(id uint64, opcode verbs.Opcode, offset int, segments ...segment) work {
	w := work{SendRequest: a.target(offset), Named: segments}
	w.ID, w.Opcode, w.Flags = id, opcode, verbs.Signalled
	return w
}

func send(id uint64, from ...segment) work {
	return work{SendRequest: verbs.SendRequest{ID: id, Opcode: verbs.OpSend, Flags: verbs.Signalled}, Named: from}
}

func sendImmediate(id uint64, immediate uint32, from ...segment) work {
	w := send(id, from...)
	w.Opcode, w.Immediate = verbs.OpSendImmediate, immediate
	return w
}

// silent makes a work unsignalled.
func (w work) silent() work {
	w.Flags &^= verbs.Signalled
	return w
}

// fenced makes a work wait for earlier reads and atomics.
func (w work) fenced() work {
	w.Flags |= verbs.Fence
	return w
}

// inline makes a work carry data in pieces of the given lengths, by default one.
func (w work) inline(data []byte, pieces ...int) work {
	w.Flags |= verbs.Inline
	w.Named, w.Data, w.Pieces = nil, data, pieces
	if len(pieces) == 0 {
		w.Pieces = []int{len(data)}
	}
	return w
}
