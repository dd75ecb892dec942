//go:build ibverbs && cgo && linux

package ibv

/*
#cgo LDFLAGS: -libverbs
#include "shim.h"
*/
import "C"

import (
	"runtime"
	"syscall"
	"unsafe"

	"github.com/onesided/rma/internal/bounds"
	"github.com/onesided/rma/verbs"
)

// All foreign code is used in this file and in post_unsafe.go. Pointers of the library are kept as they are, and
// followed only to numbers that do not change. Go memory is passed as numbers, in calls that keep none of them, or as
// regions, whose memory does not move and is referenced until they end.

// listed is the system's list of cards.
type listed struct {
	list  **C.struct_ibv_device
	cards []*C.struct_ibv_device
}

// list lists the cards for which the library has a driver.
func list() (*listed, error) {
	var n C.int
	l, err := C.ibv_get_device_list(&n)
	if l == nil {
		return nil, err
	}
	// Sound: the library says that there are n, until the list is freed.
	return &listed{l, unsafe.Slice(l, int(n))}, nil
}

func (l *listed) free() { C.ibv_free_device_list(l.list) }

func (l *listed) name(i int) string { return C.GoString(C.ibv_get_device_name(l.cards[i])) }

// file returns the name of the device's file in /dev/infiniband.
func (l *listed) file(i int) string { return C.GoString(&l.cards[i].dev_name[0]) }

// takesConnections reports whether the card's queue pairs can be connected by the addresses that this package
// exchanges. It excludes iWARP, which uses TCP connections of its own, and other transports such as EFA, which has no
// reliable connections.
func (l *listed) takesConnections(i int) bool {
	return l.cards[i].transport_type == C.IBV_TRANSPORT_IB
}

// A card is an open card.
type card struct {
	context *C.struct_ibv_context
	domain  *C.struct_ibv_pd
	channel *C.struct_ibv_comp_channel
}

func (l *listed) open(i int) (*card, error) {
	context, err := C.ibv_open_device(l.cards[i])
	if context == nil {
		return nil, err
	}
	c := &card{context: context}
	if c.domain, err = C.ibv_alloc_pd(context); c.domain == nil {
		c.close()
		return nil, err
	}
	if c.channel, err = C.ibv_create_comp_channel(context); c.channel == nil {
		c.close()
		return nil, err
	}
	for _, fd := range []C.int{c.context.async_fd, c.channel.fd} {
		if rc, err := C.rma_unblock(fd); rc < 0 {
			c.close()
			return nil, err
		}
	}
	return c, nil
}

// close closes the card. Only what open made is left of it.
func (c *card) close() {
	if c.channel != nil {
		C.ibv_destroy_comp_channel(c.channel)
	}
	if c.domain != nil {
		C.ibv_dealloc_pd(c.domain)
	}
	C.ibv_close_device(c.context)
}

// queueDescriptor and eventDescriptor become readable when there is an event.
func (c *card) queueDescriptor() int { return int(c.channel.fd) }
func (c *card) eventDescriptor() int { return int(c.context.async_fd) }

// rxeVendor is the vendor of the software card of Linux.
const rxeVendor = 0xffffff

// mellanoxVendor is the vendor of cards that are known to write to the bus in ascending order if no region has relaxed
// ordering. PCI Express and amd64 processors keep that order. The software card of Linux copies by its kernel's memcpy.
const mellanoxVendor = 0x02c9

// limits are the limits of a card.
type limits struct {
	ports                          int
	depth, segments, completions   int
	region                         uint64
	readsOut, readsIn              int
	atomics, coherentAtomics       bool
	pagesOnDemand, atomicsOnDemand bool
	// orderedWrites: the card and this machine place the bytes of a write in ascending order.
	orderedWrites bool
	// fencesFail: the card's fences are unreliable. queuesFixed: its queues cannot be enlarged.
	fencesFail, queuesFixed bool
}

func (c *card) limits() (limits, error) {
	var a C.struct_ibv_device_attr
	if rc := C.ibv_query_device(c.context, &a); rc != 0 {
		return limits{}, syscall.Errno(rc)
	}
	l := limits{
		ports: int(a.phys_port_cnt), depth: int(a.max_qp_wr), segments: int(a.max_sge), completions: int(a.max_cqe),
		region: uint64(a.max_mr_size), readsOut: int(a.max_qp_init_rd_atom), readsIn: int(a.max_qp_rd_atom),
		// The kernel's rdma_rxe may send nothing any more after a fenced message had to wait for a receive (Linux 6.1).
		fencesFail:      a.vendor_id == rxeVendor,
		orderedWrites:   a.vendor_id == mellanoxVendor && runtime.GOARCH == "amd64",
		atomics:         a.atomic_cap != C.IBV_ATOMIC_NONE,
		coherentAtomics: a.atomic_cap == C.IBV_ATOMIC_GLOB,
	}
	onDemand := C.rma_pages_on_demand(c.context)
	l.pagesOnDemand, l.atomicsOnDemand = onDemand > 0, onDemand > 1
	if reads := int(a.max_sge_rd); reads > 0 {
		l.segments = min(l.segments, reads)
	}
	return l, nil
}

// port returns the state of a port.
func (c *card) port(n int) (port, error) {
	var a C.struct_ibv_port_attr
	if rc := C.rma_query_port(c.context, C.uint8_t(n), &a); rc != 0 {
		return port{}, syscall.Errno(rc)
	}
	return port{
		number: n, state: portState(a.state), mtu: mtu(a.active_mtu), message: uint64(a.max_msg_sz), lid: uint16(a.lid),
		ethernet: a.link_layer == C.IBV_LINK_LAYER_ETHERNET,
		global:   a.link_layer == C.IBV_LINK_LAYER_ETHERNET || a.flags&C.IBV_QPF_GRH_REQUIRED != 0,
		rate:     rateOf(uint8(a.active_speed), uint8(a.active_width)),
		gids:     int(a.gid_tbl_len),
	}, nil
}

// gids returns the used entries of the port's table.
func (c *card) gids(port int) ([]gid, error) {
	entries := make([]C.struct_ibv_gid_entry, 1024)
	n, err := C._ibv_query_gid_table(c.context, &entries[0], C.size_t(len(entries)), 0, C.sizeof_struct_ibv_gid_entry)
	if n < 0 {
		if err == nil {
			err = syscall.Errno(-n)
		}
		return nil, err
	}
	var found []gid
	for i := range entries[:n] {
		e := &entries[i]
		if int(e.port_num) == port {
			found = append(found, gid{index: int(e.gid_index), kind: gidKind(e.gid_type), address: e.gid})
		}
	}
	return found, nil
}

// A memory is a registration.
type memory struct{ mr *C.struct_ibv_mr }

// register registers memory, which is not empty, and is referenced until deregister.
func (c *card) register(bytes []byte, access verbs.Access, onDemand bool) (memory, error) {
	var flags C.int
	for right, flag := range map[verbs.Access]C.int{
		verbs.LocalWrite: C.IBV_ACCESS_LOCAL_WRITE, verbs.RemoteWrite: C.IBV_ACCESS_REMOTE_WRITE | C.IBV_ACCESS_LOCAL_WRITE,
		verbs.RemoteRead: C.IBV_ACCESS_REMOTE_READ, verbs.RemoteAtomic: C.IBV_ACCESS_REMOTE_ATOMIC | C.IBV_ACCESS_LOCAL_WRITE,
	} {
		if access&right != 0 {
			flags |= flag
		}
	}
	if onDemand {
		flags |= C.IBV_ACCESS_ON_DEMAND
	}
	mr, err := C.rma_register(c.domain, C.uint64_t(bounds.Address(bytes)), C.size_t(len(bytes)), flags)
	if mr == nil {
		return memory{}, err
	}
	return memory{mr}, nil
}

func (m memory) lkey() uint32 { return uint32(m.mr.lkey) }
func (m memory) rkey() uint32 { return uint32(m.mr.rkey) }

func (m memory) deregister() error { return number(C.ibv_dereg_mr(m.mr)) }

// number converts an error that the library returns as a number.
func number(rc C.int) error {
	if rc == 0 {
		return nil
	}
	if rc < 0 {
		rc = -rc
	}
	return syscall.Errno(rc)
}

// A queue is the card's part of a completion queue.
type queue struct{ cq *C.struct_ibv_cq }

// newQueue makes a queue for at least a number of completions.
func (c *card) newQueue(completions int) (queue, error) {
	cq, err := C.ibv_create_cq(c.context, C.int(completions), nil, c.channel, 0)
	if cq == nil {
		return queue{}, err
	}
	return queue{cq}, nil
}

// room returns how many completions the queue holds.
func (q queue) room() int { return int(q.cq.cqe) }

func (q queue) resize(completions int) error {
	return number(C.ibv_resize_cq(q.cq, C.int(completions)))
}

// arm makes the next completion generate an event.
func (q queue) arm() error { return number(C.rma_arm(q.cq)) }

func (q queue) destroy() error { return number(C.ibv_destroy_cq(q.cq)) }

// queueEvent takes the event of a completion queue. It returns false if there is none.
func (c *card) queueEvent() (queue, bool) {
	cq := C.rma_queue_event(c.channel)
	return queue{cq}, cq != nil
}

// An event is an asynchronous event of a card.
type event struct {
	kind eventKind
	// pair is the number of a queue pair, port that of a port, queue the completion queue.
	pair  uint32
	port  int
	queue queue
}

// event takes an event. It returns false if there is none.
func (c *card) event() (event, bool) {
	var e C.struct_rma_event
	if C.rma_take_event(c.context, &e) == 0 {
		return event{}, false
	}
	switch e._type {
	case C.IBV_EVENT_CQ_ERR:
		return event{kind: eventQueue, queue: queue{e.cq}}, true
	case C.IBV_EVENT_QP_FATAL, C.IBV_EVENT_QP_REQ_ERR, C.IBV_EVENT_QP_ACCESS_ERR:
		return event{kind: eventPair, pair: uint32(e.number)}, true
	case C.IBV_EVENT_PORT_ERR:
		return event{kind: eventPortDown, port: int(e.number)}, true
	case C.IBV_EVENT_PORT_ACTIVE:
		return event{kind: eventPortUp, port: int(e.number)}, true
	case C.IBV_EVENT_DEVICE_FATAL:
		return event{kind: eventFatal}, true
	}
	return event{}, true
}

// A rawPair is the card's part of a queue pair.
type rawPair struct{ qp *C.struct_ibv_qp }

// sizes are the sizes of a queue pair.
type sizes struct{ sends, receives, segments, inline int }

// newPair makes a queue pair, and returns how much inline data it supports.
func (c *card) newPair(sends, receives queue, s sizes) (pair rawPair, inline int, err error) {
	var a C.struct_ibv_qp_init_attr
	a.send_cq, a.recv_cq = sends.cq, receives.cq
	a.qp_type = C.IBV_QPT_RC
	a.cap.max_send_wr, a.cap.max_recv_wr = C.uint32_t(s.sends), C.uint32_t(s.receives)
	a.cap.max_send_sge, a.cap.max_recv_sge = C.uint32_t(s.segments), C.uint32_t(s.segments)
	a.cap.max_inline_data = C.uint32_t(s.inline)
	qp, err := C.ibv_create_qp(c.domain, &a)
	if qp == nil {
		return rawPair{}, 0, err
	}
	return rawPair{qp}, int(a.cap.max_inline_data), nil
}

func (p rawPair) number() uint32 { return uint32(p.qp.qp_num) }

func (p rawPair) destroy() error { return number(C.ibv_destroy_qp(p.qp)) }

func (p rawPair) toInit(port int, atomics bool) error {
	var with C.int
	if atomics {
		with = 1
	}
	return number(C.rma_to_init(p.qp, C.uint8_t(port), with))
}

func (p rawPair) toReceive(to *path) error {
	f := to.foreign()
	return number(C.rma_to_receive(p.qp, &f))
}

func (p rawPair) toSend(to *path) error {
	f := to.foreign()
	return number(C.rma_to_send(p.qp, &f))
}

func (p rawPair) toError() error { return number(C.rma_to_error(p.qp)) }

func (p *path) foreign() C.struct_rma_path {
	f := C.struct_rma_path{
		number: C.uint32_t(p.peer.number), rq_psn: C.uint32_t(p.peer.packet), sq_psn: C.uint32_t(p.packet), lid: C.uint16_t(p.peer.lid),
		port: C.uint8_t(p.port), gid_index: C.uint8_t(p.gidIndex), mtu: C.uint8_t(p.mtu), hop_limit: hopLimit,
		reads_out: C.uint8_t(p.readsOut), reads_in: C.uint8_t(p.readsIn), rnr_timer: notReadyPause,
		timeout: C.uint8_t(p.timeout), retries: retries, rnr_retries: notReadyRetries,
	}
	if p.global {
		f.global = 1
	}
	for i, b := range p.peer.gid {
		f.gid[i] = C.uint8_t(b)
	}
	return f
}
