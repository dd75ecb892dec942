//go:build ibverbs && cgo && linux

package nulldev

/*
#include <stdlib.h>
#include <string.h>
#include <infiniband/verbs.h>

enum { most = 1 << 12 };

struct hollow {
	struct ibv_context context;
	struct ibv_qp qp;
	struct ibv_cq cq;
	uint64_t ids[most];
	unsigned int posted, polled;
};

static struct hollow *of(struct ibv_context *context) { return (struct hollow *)context; }

static int post(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct hollow *h = of(qp->context);

	for (; wr != NULL; wr = wr->next)
		if (wr->send_flags & IBV_SEND_SIGNALED)
			h->ids[h->posted++ % most] = wr->wr_id;
	(void)bad;
	return 0;
}

static int poll(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	struct hollow *h = of(cq->context);
	int i;

	for (i = 0; i < n && h->polled != h->posted; i++) {
		memset(&wc[i], 0, sizeof(wc[i]));
		wc[i].wr_id = h->ids[h->polled++ % most];
	}
	return i;
}

static struct hollow *make(void)
{
	struct hollow *h = calloc(1, sizeof(*h));

	if (h == NULL)
		return NULL;
	h->context.ops.post_send = post;
	h->context.ops.poll_cq = poll;
	h->qp.context = &h->context;
	h->cq.context = &h->context;
	return h;
}

static struct ibv_qp *qp(struct hollow *h) { return &h->qp; }
static struct ibv_cq *cq(struct hollow *h) { return &h->cq; }
*/
import "C"

import "unsafe"

// New makes a card and returns its queue pair and completion queue, as the library's pointers to an ibv_qp and an
// ibv_cq. free frees it.
func New() (pair, queue unsafe.Pointer, free func()) {
	h := C.make()
	if h == nil {
		panic("hollow: not enough memory")
	}
	return unsafe.Pointer(C.qp(h)), unsafe.Pointer(C.cq(h)), func() { C.free(unsafe.Pointer(h)) }
}
