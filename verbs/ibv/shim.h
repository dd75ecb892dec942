// What Go calls of libibverbs, in forms that suit it: flat requests and completions that
// hold addresses as numbers, one call for a batch of them, and functions for what the
// library has as macros, inline functions or unions.

#ifndef RMA_IBV_SHIM_H
#define RMA_IBV_SHIM_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <infiniband/verbs.h>

// The most requests or completions of one call. Their forms for the library are on the
// stack of the call.
enum { RMA_BATCH = 64 };

// A request for the send queue. Its segments follow those of the one before.
struct rma_send {
	uint64_t id;
	uint64_t remote;
	uint64_t operand;
	uint64_t compare;
	uint32_t rkey;
	uint32_t immediate;
	uint32_t flags;
	uint16_t opcode;
	uint16_t segments;
};

struct rma_receive {
	uint64_t id;
	uint64_t segments;
};

struct rma_completion {
	uint64_t id;
	uint32_t status;
	uint32_t vendor;
	uint32_t opcode;
	uint32_t bytes;
	uint32_t immediate;
	uint32_t flags;
};

// rma_post_send posts n requests and returns 0 or what errno would be. taken is how many
// the card has.
static int rma_post_send(struct ibv_qp *qp, const struct rma_send *from, struct ibv_sge *segments, int n, int *taken)
{
	struct ibv_send_wr wr[RMA_BATCH], *bad = NULL;
	int i, rc;

	for (i = 0; i < n; i++) {
		struct ibv_send_wr *w = &wr[i];
		const struct rma_send *f = &from[i];

		w->wr_id = f->id;
		w->next = i + 1 < n ? w + 1 : NULL;
		w->sg_list = segments;
		w->num_sge = f->segments;
		segments += f->segments;
		w->opcode = f->opcode;
		w->send_flags = f->flags;
		w->imm_data = htonl(f->immediate);
		if (f->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
			w->wr.atomic.remote_addr = f->remote;
			w->wr.atomic.compare_add = f->operand;
			w->wr.atomic.swap = 0;
			w->wr.atomic.rkey = f->rkey;
		} else if (f->opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
			w->wr.atomic.remote_addr = f->remote;
			w->wr.atomic.compare_add = f->compare;
			w->wr.atomic.swap = f->operand;
			w->wr.atomic.rkey = f->rkey;
		} else {
			w->wr.rdma.remote_addr = f->remote;
			w->wr.rdma.rkey = f->rkey;
		}
	}
	rc = ibv_post_send(qp, wr, &bad);
	*taken = rc == 0 ? n : bad != NULL ? (int)(bad - wr) : 0;
	return rc < 0 ? -rc : rc;
}

// rma_post_receive does for receives.
static int rma_post_receive(struct ibv_qp *qp, const struct rma_receive *from, struct ibv_sge *segments, int n, int *taken)
{
	struct ibv_recv_wr wr[RMA_BATCH], *bad = NULL;
	int i, rc;

	for (i = 0; i < n; i++) {
		wr[i].wr_id = from[i].id;
		wr[i].next = i + 1 < n ? &wr[i + 1] : NULL;
		wr[i].sg_list = segments;
		wr[i].num_sge = (int)from[i].segments;
		segments += from[i].segments;
	}
	rc = ibv_post_recv(qp, wr, &bad);
	*taken = rc == 0 ? n : bad != NULL ? (int)(bad - wr) : 0;
	return rc < 0 ? -rc : rc;
}

// rma_poll takes up to n completions and returns how many, or less than 0.
static int rma_poll(struct ibv_cq *cq, struct rma_completion *into, int n)
{
	struct ibv_wc wc[RMA_BATCH];
	int i, got = ibv_poll_cq(cq, n, wc);

	for (i = 0; i < got; i++) {
		into[i].id = wc[i].wr_id;
		into[i].status = wc[i].status;
		into[i].vendor = wc[i].vendor_err;
		into[i].opcode = wc[i].opcode;
		into[i].bytes = wc[i].byte_len;
		into[i].immediate = ntohl(wc[i].imm_data);
		into[i].flags = wc[i].wc_flags;
	}
	return got;
}

static int rma_arm(struct ibv_cq *cq) { return ibv_req_notify_cq(cq, 0); }

// rma_queue_event takes an event of a completion queue and gives the queue, or NULL.
static struct ibv_cq *rma_queue_event(struct ibv_comp_channel *channel)
{
	struct ibv_cq *cq = NULL;
	void *context;

	if (ibv_get_cq_event(channel, &cq, &context) != 0)
		return NULL;
	ibv_ack_cq_events(cq, 1);
	return cq;
}

struct rma_event {
	int type;
	// The number of a queue pair or of a port.
	uint32_t number;
	struct ibv_cq *cq;
};

// rma_event takes an asynchronous event, and is 0 if there is none. The event is
// acknowledged at once, so that whoever destroys what it is about does not wait.
static int rma_take_event(struct ibv_context *context, struct rma_event *into)
{
	struct ibv_async_event event;

	if (ibv_get_async_event(context, &event) != 0)
		return 0;
	memset(into, 0, sizeof(*into));
	into->type = event.event_type;
	switch (event.event_type) {
	case IBV_EVENT_CQ_ERR:
		into->cq = event.element.cq;
		break;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
		into->number = event.element.qp->qp_num;
		break;
	case IBV_EVENT_PORT_ACTIVE:
	case IBV_EVENT_PORT_ERR:
		into->number = event.element.port_num;
		break;
	default:
		break;
	}
	ibv_ack_async_event(&event);
	return 1;
}

static int rma_unblock(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 ? flags : fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

// The path from a queue pair to its peer's.
struct rma_path {
	uint8_t gid[16];
	uint32_t number, rq_psn, sq_psn;
	uint16_t lid;
	uint8_t port, gid_index, global, mtu, hop_limit;
	uint8_t reads_out, reads_in, rnr_timer;
	uint8_t timeout, retries, rnr_retries;
};

static int rma_to_init(struct ibv_qp *qp, uint8_t port, int atomics)
{
	struct ibv_qp_attr a;

	memset(&a, 0, sizeof(a));
	a.qp_state = IBV_QPS_INIT;
	a.port_num = port;
	a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | (atomics ? IBV_ACCESS_REMOTE_ATOMIC : 0);
	return ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static int rma_to_receive(struct ibv_qp *qp, const struct rma_path *p)
{
	struct ibv_qp_attr a;

	memset(&a, 0, sizeof(a));
	a.qp_state = IBV_QPS_RTR;
	a.path_mtu = p->mtu;
	a.dest_qp_num = p->number;
	a.rq_psn = p->rq_psn;
	a.max_dest_rd_atomic = p->reads_in;
	a.min_rnr_timer = p->rnr_timer;
	a.ah_attr.dlid = p->lid;
	a.ah_attr.port_num = p->port;
	if (p->global) {
		a.ah_attr.is_global = 1;
		memcpy(a.ah_attr.grh.dgid.raw, p->gid, sizeof(p->gid));
		a.ah_attr.grh.sgid_index = p->gid_index;
		a.ah_attr.grh.hop_limit = p->hop_limit;
	}
	return ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

static int rma_to_send(struct ibv_qp *qp, const struct rma_path *p)
{
	struct ibv_qp_attr a;

	memset(&a, 0, sizeof(a));
	a.qp_state = IBV_QPS_RTS;
	a.sq_psn = p->sq_psn;
	a.timeout = p->timeout;
	a.retry_cnt = p->retries;
	a.rnr_retry = p->rnr_retries;
	a.max_rd_atomic = p->reads_out;
	return ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					     IBV_QP_MAX_QP_RD_ATOMIC);
}

static int rma_to_error(struct ibv_qp *qp)
{
	struct ibv_qp_attr a;

	memset(&a, 0, sizeof(a));
	a.qp_state = IBV_QPS_ERR;
	return ibv_modify_qp(qp, &a, IBV_QP_STATE);
}

// rma_query_port is a function where the library has a macro.
static int rma_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *into)
{
	return ibv_query_port(context, port, into);
}

// rma_register is a function where the library has a macro.
static struct ibv_mr *rma_register(struct ibv_pd *pd, uint64_t address, size_t length, int access)
{
	return ibv_reg_mr(pd, (void *)(uintptr_t)address, length, (unsigned int)access);
}

// rma_pages_on_demand tells whether the card serves messages, writes and reads from pages that
// are not pinned: 1 if it does, 2 if atomics as well.
static int rma_pages_on_demand(struct ibv_context *context)
{
	const uint32_t all = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ;
	struct ibv_device_attr_ex a;

	memset(&a, 0, sizeof(a));
	if (ibv_query_device_ex(context, NULL, &a) != 0)
		return 0;
	if ((a.odp_caps.general_caps & IBV_ODP_SUPPORT) == 0 || (a.odp_caps.per_transport_caps.rc_odp_caps & all) != all)
		return 0;
	return (a.odp_caps.per_transport_caps.rc_odp_caps & IBV_ODP_SUPPORT_ATOMIC) != 0 ? 2 : 1;
}

#endif
