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
	// batch is the maximum number of requests or completions of one call.
	batch = C.RMA_BATCH
	// bufferSegments is the maximum number of segments of one call: on average two per request.
	bufferSegments = 2 * batch
	mostSegments   = 16
	mostInline     = 256
)

// A postBuffer is the buffer in which a batch of requests is written in the form of the foreign call. It holds
// addresses as numbers, so the collector and the rules of cgo need no action. The region keeps its memory in place, and
// inline data is copied to the buffer. The buffer is on the heap, which does not move.
type postBuffer struct {
	sends    [batch]C.struct_rma_send
	receives [batch]C.struct_rma_receive
	segments [bufferSegments]C.struct_ibv_sge
	inline   [batch * mostInline]byte

	requests, used, inlined int
}

// full reports whether there may be no room for another request.
func (b *postBuffer) full() bool {
	return b.requests == batch || b.used > bufferSegments-mostSegments
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

// send adds a request that CheckSend has accepted.
func (b *postBuffer) send(id uint64, r *verbs.SendRequest, flags verbs.Flags) {
	f := &b.sends[b.requests]
	f.id, f.remote, f.rkey = C.uint64_t(id), C.uint64_t(r.RemoteAddress), C.uint32_t(r.RKey)
	f.operand, f.compare = C.uint64_t(r.Operand), C.uint64_t(r.Compare)
	f.immediate = C.uint32_t(r.Immediate)
	f.opcode, f.flags = opcodes[r.Opcode], sendFlags[flags]
	if flags&verbs.Inline != 0 {
		f.segments = b.copy(r.Segments)
	} else {
		f.segments = C.uint16_t(b.add(r.Segments))
	}
	b.requests++
}

// receive adds a receive.
func (b *postBuffer) receive(id uint64, r *verbs.ReceiveRequest) {
	b.receives[b.requests] = C.struct_rma_receive{id: C.uint64_t(id), segments: C.uint64_t(b.add(r.Segments))}
	b.requests++
}

// add adds the segments that are not empty: some cards take a length of 0 as 2 GiB.
func (b *postBuffer) add(segments []verbs.Segment) (added int) {
	for i := range segments {
		s := &segments[i]
		if len(s.Memory) == 0 {
			continue
		}
		b.segments[b.used] = C.struct_ibv_sge{addr: C.uint64_t(bounds.Address(s.Memory)), length: C.uint32_t(len(s.Memory)), lkey: C.uint32_t(s.LKey)}
		b.used++
		added++
	}
	return added
}

// copy gathers inline data, which may be memory that moves, into one segment.
func (b *postBuffer) copy(segments []verbs.Segment) (added C.uint16_t) {
	from := b.inlined
	for i := range segments {
		b.inlined += copy(b.inline[b.inlined:], segments[i].Memory)
	}
	if b.inlined == from {
		return 0
	}
	b.segments[b.used] = C.struct_ibv_sge{addr: C.uint64_t(bounds.Address(b.inline[from:])), length: C.uint32_t(b.inlined - from)}
	b.used++
	return 1
}

// clear empties the buffer.
func (b *postBuffer) clear() { b.requests, b.used, b.inlined = 0, 0, 0 }

// postSends posts the requests in the buffer and returns how many the card took.
func (p rawPair) postSends(b *postBuffer) (taken int, err error) {
	var n C.int
	rc := C.rma_post_send(p.qp, &b.sends[0], &b.segments[0], C.int(b.requests), &n)
	return int(n), number(rc)
}

// postReceives posts the receives in the buffer and returns how many the card took.
func (p rawPair) postReceives(b *postBuffer) (taken int, err error) {
	var n C.int
	rc := C.rma_post_receive(p.qp, &b.receives[0], &b.segments[0], C.int(b.requests), &n)
	return int(n), number(rc)
}

// completions receives what the foreign call returns.
type completions struct {
	done [batch]C.struct_rma_completion
}

// poll takes at most n completions, n at most batch.
func (q queue) poll(c *completions, n int) int {
	return int(C.rma_poll(q.cq, &c.done[0], C.int(n)))
}

// id and the other methods return the fields of a completion.
func (c *completions) id(i int) uint64        { return uint64(c.done[i].id) }
func (c *completions) bytes(i int) uint32     { return uint32(c.done[i].bytes) }
func (c *completions) immediate(i int) uint32 { return uint32(c.done[i].immediate) }
func (c *completions) vendor(i int) uint32    { return uint32(c.done[i].vendor) }

// received returns the opcode of the completion of a receive.
func (c *completions) received(i int) verbs.Opcode {
	if c.done[i].flags&C.IBV_WC_WITH_IMM != 0 {
		return verbs.OpReceiveImmediate
	}
	return verbs.OpReceive
}

// statuses translates statuses to those of package verbs. A status without an equivalent is an operation that the peer,
// or this side, could not execute.
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

// status returns the status of a completion.
func (c *completions) status(i int) verbs.Status {
	if c.done[i].status == C.IBV_WC_SUCCESS {
		return verbs.StatusSuccess
	}
	if s, known := statuses[c.done[i].status]; known {
		return s
	}
	return verbs.StatusRemoteOperation
}

// isLocal reports whether this side's queue pair could not execute a request, for whatever reason.
func (c *completions) isLocal(i int) bool { return c.done[i].status == C.IBV_WC_LOC_QP_OP_ERR }

// receiveStatus returns the status of a receive. For a message that is too long, some cards report in a receive what
// the peer did, or that this side cannot execute it.
func (c *completions) receiveStatus(i int) verbs.Status {
	switch c.done[i].status {
	case C.IBV_WC_REM_INV_REQ_ERR, C.IBV_WC_LOC_QP_OP_ERR:
		return verbs.StatusLocalLength
	case C.IBV_WC_REM_ACCESS_ERR, C.IBV_WC_REM_OP_ERR:
		return verbs.StatusFlushed
	}
	return c.status(i)
}

// name returns the library's name of a completion's status.
func (c *completions) name(i int) string {
	return C.GoString(C.ibv_wc_status_str(C.enum_ibv_wc_status(c.done[i].status)))
}
