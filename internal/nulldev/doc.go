// Package nulldev is an RDMA card that does nothing, made of libibverbs' own structures; it is for benchmarks and tests
// of package ibv.
//
// The card drops posted requests, except for the IDs of signalled requests, which complete when the queue is polled.
package nulldev

import _ "github.com/onesided/rma/internal/platform"
