// Package nulldev is a card that does nothing, with libibverbs' own structures. Where there is no card, it measures
// what calls of the library cost a Go program, and shows that they allocate nothing.
//
// The card drops posted requests, except for the IDs of signalled requests, which complete when the queue is polled.
package nulldev

import _ "github.com/onesided/rma/internal/platform"
