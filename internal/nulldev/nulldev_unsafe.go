//go:build ibverbs && cgo && linux

package nulldev

/*
#include <stdlib.h>
#include <string.h>
#include <infiniband/verbs.h>

enum { MAX_OUTSTANDING = 1 << 12 };

struct device {
	struct ibv_context context;
	struct ibv_qp qp;
	struct ibv_cq cq;
	uint64_t ids[MAX_OUTSTANDING];
	unsigned int posted, polled;
};

static struct device *of(struct ibv_context *context) { return (struct device *)context; }

static int post(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct device *d = of(qp->context);

	for (; wr != NULL; wr = wr->next)
		if (wr->send_flags & IBV_SEND_SIGNALED)
			d->ids[d->posted++ % MAX_OUTSTANDING] = wr->wr_id;
	(void)bad;
	return 0;
}

static int poll(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	struct device *d = of(cq->context);
	int i;

	for (i = 0; i < n && d->polled != d->posted; i++) {
		memset(&wc[i], 0, sizeof(wc[i]));
		wc[i].wr_id = d->ids[d->polled++ % MAX_OUTSTANDING];
	}
	return i;
}

static struct device *make(void)
{
	struct device *d = calloc(1, sizeof(*d));

	if (d == NULL)
		return NULL;
	d->context.ops.post_send = post;
	d->context.ops.poll_cq = poll;
	d->qp.context = &d->context;
	d->cq.context = &d->context;
	return d;
}

static struct ibv_qp *qp(struct device *d) { return &d->qp; }
static struct ibv_cq *cq(struct device *d) { return &d->cq; }
*/
import "C"

import "unsafe"

// New makes a card and returns its queue pair and completion queue, as the library's pointers to an ibv_qp and an
// ibv_cq. free frees it.
func New() (pair, queue unsafe.Pointer, free func()) {
	d := C.make()
	if d == nil {
		panic("nulldev: not enough memory")
	}
	return unsafe.Pointer(C.qp(d)), unsafe.Pointer(C.cq(d)), func() { C.free(unsafe.Pointer(d)) }
}
