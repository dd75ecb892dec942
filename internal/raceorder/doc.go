// Package raceorder makes the race detector see order that goes through other processes; it is for devices and windows.
// A process notifies a second process, and later waits for a notification from it. What the first process did before it
// notified the second happened before what it does after the wait. The detector does not see this by itself.
//
//	raceorder.Release()
//	flag.Store(1) // In memory that another process maps.
//
//	for reply.Load() == 0 {
//	}
//	raceorder.Acquire()
//
// Network devices and windows make these calls. For processes that synchronize by their own means, such as a pipe, the
// detector may report races that there are not.
//
// There is one order for the whole process. The detector finds no race between code before Release in one
// goroutine and code after a later Acquire in another, ordered or not.
//
// Without the race detector both calls do nothing.
package raceorder

import _ "github.com/onesided/rma/internal/platform"
