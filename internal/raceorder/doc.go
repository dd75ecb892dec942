// Package raceorder makes the race detector see order that goes through other processes; it is for devices and windows.
// What a process did before it notified another process happened before what it does after it has heard that it
// may continue.
//
//	raceorder.BeforeTelling()
//	flag.Store(1) // In memory that another process maps.
//
//	for reply.Load() == 0 {
//	}
//	raceorder.AfterHearing()
//
// Network devices and windows make these calls. For processes that synchronize by their own means, such as a pipe, the
// detector may report races that there are not.
//
// There is one order for the whole process. The detector finds no race between code before BeforeTelling in one
// goroutine and code after a later AfterHearing in another, whether they are ordered or not.
//
// Without the race detector both calls do nothing.
package raceorder

import _ "github.com/onesided/rma/internal/platform"
