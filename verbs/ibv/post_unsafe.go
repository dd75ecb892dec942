//go:build ibverbs && cgo && linux

package ibv

/*
#cgo noescape rma_post_send
#cgo nocallback rma_post_send
#cgo noescape rma_post_receive
#cgo nocallback rma_post_receive
#cgo noescape rma_poll
#cgo nocallback rma_poll
#include "shim.h"
*/
import "C"

import (
	"github.com/onesided/rma/internal/bounds"
	"github.com/onesided/rma/verbs"
)

const (
	// batch is how many requests or completions one call takes.
	batch = C.RMA_BATCH
	// deskSegments are the segments of one call: on average two for each request.
	deskSegments = 2 * batch
	mostSegments = 16
	mostInline   = 256
)

// A desk is where requests are written in the form of the foreign call. It holds addresses
// as numbers, so the collector and the rules of cgo have nothing to look at: what keeps the
// memory in its place is its region, which refers to it, and inline data is copied to the
// desk. It is on the heap, which does not move.
type desk struct {
	sends    [batch]C.struct_rma_send
	receives [batch]C.struct_rma_receive
	segments [deskSegments]C.struct_ibv_sge
	inline   [batch * mostInline]byte

	requests, used, inlined int
}

// full tells whether another request may not find room.
func (d *desk) full() bool {
	return d.requests == batch || d.used > deskSegments-mostSegments
}

var opcodes = [...]C.uint16_t{
	verbs.OpSend: C.IBV_WR_SEND, verbs.OpSendImmediate: C.IBV_WR_SEND_WITH_IMM,
	verbs.OpRDMAWrite: C.IBV_WR_RDMA_WRITE, verbs.OpRDMAWriteImmediate: C.IBV_WR_RDMA_WRITE_WITH_IMM,
	verbs.OpRDMARead: C.IBV_WR_RDMA_READ, verbs.OpFetchAdd: C.IBV_WR_ATOMIC_FETCH_AND_ADD,
	verbs.OpCompareSwap: C.IBV_WR_ATOMIC_CMP_AND_SWP,
}

var sendFlags = func() (flags [8]C.uint32_t) {
	for i := range flags {
		for flag, foreign := range map[verbs.Flags]C.uint32_t{
			verbs.Signalled: C.IBV_SEND_SIGNALED, verbs.Inline: C.IBV_SEND_INLINE, verbs.Fence: C.IBV_SEND_FENCE,
		} {
			if verbs.Flags(i)&flag != 0 {
				flags[i] |= foreign
			}
		}
	}
	return flags
}()

// send adds a request that CheckSend found good.
func (d *desk) send(id uint64, r *verbs.SendRequest, flags verbs.Flags) {
	f := &d.sends[d.requests]
	f.id, f.remote, f.rkey = C.uint64_t(id), C.uint64_t(r.RemoteAddress), C.uint32_t(r.RKey)
	f.operand, f.compare = C.uint64_t(r.Operand), C.uint64_t(r.Compare)
	f.immediate = C.uint32_t(r.Immediate)
	f.opcode, f.flags = opcodes[r.Opcode], sendFlags[flags]
	if flags&verbs.Inline != 0 {
		f.segments = d.copy(r.Segments)
	} else {
		f.segments = C.uint16_t(d.add(r.Segments))
	}
	d.requests++
}

// receive adds a receive.
func (d *desk) receive(id uint64, r *verbs.ReceiveRequest) {
	d.receives[d.requests] = C.struct_rma_receive{id: C.uint64_t(id), segments: C.uint64_t(d.add(r.Segments))}
	d.requests++
}

// add adds segments, but for empty ones: to some cards a length of 0 is 2 GiB.
func (d *desk) add(segments []verbs.Segment) (added int) {
	for i := range segments {
		s := &segments[i]
		if len(s.Memory) == 0 {
			continue
		}
		d.segments[d.used] = C.struct_ibv_sge{addr: C.uint64_t(bounds.Address(s.Memory)), length: C.uint32_t(len(s.Memory)), lkey: C.uint32_t(s.LKey)}
		d.used++
		added++
	}
	return added
}

// copy gathers inline data, which may be memory that moves, into one segment.
func (d *desk) copy(segments []verbs.Segment) (added C.uint16_t) {
	from := d.inlined
	for i := range segments {
		d.inlined += copy(d.inline[d.inlined:], segments[i].Memory)
	}
	if d.inlined == from {
		return 0
	}
	d.segments[d.used] = C.struct_ibv_sge{addr: C.uint64_t(bounds.Address(d.inline[from:])), length: C.uint32_t(d.inlined - from)}
	d.used++
	return 1
}

// clear makes the desk empty.
func (d *desk) clear() { d.requests, d.used, d.inlined = 0, 0, 0 }

// postSends posts what is on the desk and tells how many requests the card took.
func (p rawPair) postSends(d *desk) (taken int, err error) {
	var n C.int
	rc := C.rma_post_send(p.qp, &d.sends[0], &d.segments[0], C.int(d.requests), &n)
	return int(n), number(rc)
}

// postReceives does for receives.
func (p rawPair) postReceives(d *desk) (taken int, err error) {
	var n C.int
	rc := C.rma_post_receive(p.qp, &d.receives[0], &d.segments[0], C.int(d.requests), &n)
	return int(n), number(rc)
}

// A tray is where completions are put by the foreign call.
type tray struct {
	done [batch]C.struct_rma_completion
}

// poll takes up to n completions, n at most batch.
func (q queue) poll(t *tray, n int) int {
	return int(C.rma_poll(q.cq, &t.done[0], C.int(n)))
}

// id, status and the others are those of a completion on the tray.
func (t *tray) id(i int) uint64        { return uint64(t.done[i].id) }
func (t *tray) bytes(i int) uint32     { return uint32(t.done[i].bytes) }
func (t *tray) immediate(i int) uint32 { return uint32(t.done[i].immediate) }
func (t *tray) vendor(i int) uint32    { return uint32(t.done[i].vendor) }

// received is the opcode of the completion of a receive.
func (t *tray) received(i int) verbs.Opcode {
	if t.done[i].flags&C.IBV_WC_WITH_IMM != 0 {
		return verbs.OpReceiveImmediate
	}
	return verbs.OpReceive
}

// statuses are in the words of package verbs. What it has no word for is an operation that
// the peer, or this side, could not carry out.
var statuses = map[C.uint32_t]verbs.Status{
	C.IBV_WC_SUCCESS:            verbs.StatusSuccess,
	C.IBV_WC_LOC_LEN_ERR:        verbs.StatusLocalLength,
	C.IBV_WC_LOC_QP_OP_ERR:      verbs.StatusLocalProtection,
	C.IBV_WC_LOC_PROT_ERR:       verbs.StatusLocalProtection,
	C.IBV_WC_LOC_ACCESS_ERR:     verbs.StatusLocalProtection,
	C.IBV_WC_WR_FLUSH_ERR:       verbs.StatusFlushed,
	C.IBV_WC_REM_INV_REQ_ERR:    verbs.StatusRemoteInvalid,
	C.IBV_WC_REM_ACCESS_ERR:     verbs.StatusRemoteAccess,
	C.IBV_WC_REM_OP_ERR:         verbs.StatusRemoteOperation,
	C.IBV_WC_RETRY_EXC_ERR:      verbs.StatusRetryExceeded,
	C.IBV_WC_RNR_RETRY_EXC_ERR:  verbs.StatusRetryExceeded,
	C.IBV_WC_RESP_TIMEOUT_ERR:   verbs.StatusRetryExceeded,
	C.IBV_WC_REM_INV_RD_REQ_ERR: verbs.StatusRemoteInvalid,
}

// status is that of a completion.
func (t *tray) status(i int) verbs.Status {
	if t.done[i].status == C.IBV_WC_SUCCESS {
		return verbs.StatusSuccess
	}
	if s, known := statuses[t.done[i].status]; known {
		return s
	}
	return verbs.StatusRemoteOperation
}

// isLocal tells that this side's queue pair could not carry a request out, for whatever reason.
func (t *tray) isLocal(i int) bool { return t.done[i].status == C.IBV_WC_LOC_QP_OP_ERR }

// receiveStatus is that of a receive. Some cards have the status of a receive say what the
// peer did, or that this side cannot carry it out where the message is too long.
func (t *tray) receiveStatus(i int) verbs.Status {
	switch t.done[i].status {
	case C.IBV_WC_REM_INV_REQ_ERR, C.IBV_WC_LOC_QP_OP_ERR:
		return verbs.StatusLocalLength
	case C.IBV_WC_REM_ACCESS_ERR, C.IBV_WC_REM_OP_ERR:
		return verbs.StatusFlushed
	}
	return t.status(i)
}

// name is the library's name of a completion's status.
func (t *tray) name(i int) string {
	return C.GoString(C.ibv_wc_status_str(C.enum_ibv_wc_status(t.done[i].status)))
}
