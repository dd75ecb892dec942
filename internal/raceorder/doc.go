// Package raceorder tells the race detector of the order that goes through other processes,
// which it does not look at: what a process did before it told another something happened
// before what it does when it has heard, of whomever, that it may go on.
//
//	outside.BeforeTelling()
//	flag.Store(1) // In memory that another process maps.
//
//	for reply.Load() == 0 {
//	}
//	outside.AfterHearing()
//
// The cards of networks and the windows do so themselves. A program whose processes tell each
// other by means of their own (a pipe, a socket) when a window may be looked at does it there.
//
// It is one order for the whole process: of goroutines that pass both, the detector finds no race
// between what comes before the one and behind the other, be they ordered by others or not.
//
// Without the race detector both do nothing.
package raceorder

import _ "github.com/onesided/rma/internal/platform"
