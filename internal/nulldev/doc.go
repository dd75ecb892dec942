// Package nulldev is a card that does nothing, in the form of libibverbs' own structures: to
// measure, where there is no card, what calls of the library cost a Go program, and that they
// allocate nothing.
//
// Requests that are posted are forgotten, but for the IDs of those that are signalled, with
// which they complete when the queue is polled.
package nulldev

import _ "github.com/onesided/rma/internal/platform"
