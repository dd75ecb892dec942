// Package epoch decides which calls on a window are legal, and what must have arrived before one returns; it is for
// those who build or check a one-sided layer. The package is a pure state machine of one rank on one window: it has no
// clock, no socket, no goroutine and no lock. Package window moves the flags or messages and does the waiting.
//
//	s := epoch.New(rank, size)
//	number, err := s.BeginFence(0)    // an error, or: send number to every rank,
//	...                               // and wait until every rank has sent it
//	s.EndFence(0)                     // the epoch is open
//	s.Open(target)                    // may an operation go to target?
//
// # Epochs
//
// An operation needs an access epoch to its target. A rank has at most one kind of them open at a time:
//
//	opened by          closed by           to                 together with
//	Fence              Fence(NoSucceed)    every rank         nothing else
//	Start              Complete            the group          an exposure
//	Lock, of several   Unlock of each      locked targets     an exposure
//	LockAll            UnlockAll           every rank         an exposure
//
// Post opens an exposure to a group. Wait closes it, or a Test that reports its end. A fence epoch is access and
// exposure to every rank. A Fence without NoSucceed closes one epoch and opens the next.
//
// Flush needs a lock on its target, FlushAll a lock on any. Sync only needs a window that is not closed, so it has no
// check here. MPI allows its sync only in an epoch of Lock or LockAll. Close requires that nothing is open or in
// progress.
//
// The assertions NoPut, NoStore and NoPrecede change nothing here: to find an operation in an epoch that NoPrecede
// calls empty, each operation would have to be recorded. NoSucceed leaves no epoch open.
//
// # Calls in two steps
//
// A call that may block is two calls here. Begin… returns a *CallError and changes nothing, or it records that the call
// is in progress. From then on another goroutine cannot begin it (ErrBusy). A second call reports how it ended:
//
//	begun            done           its context ended    a rank that it needs has failed
//	BeginFence       EndFence       SuspendFence         FailFence: no epoch is open
//	BeginStart       EndStart       AbortStart           AbortStart: nothing was opened
//	BeginComplete    EndComplete    SuspendComplete      EndComplete: the epoch is over
//	BeginPost        EndPost        SuspendPost          EndPost: the exposure to the other ranks is open
//	BeginWait        EndWait        SuspendWait          EndWait: the exposure is over
//	BeginLock        EndLock        AbortLock            AbortLock: nothing was opened
//	BeginUnlock      EndUnlock      SuspendUnlock        EndUnlock: the epoch is over
//	BeginLockAll     EndLockAll     AbortLockAll         AbortLockAll: nothing was opened
//	BeginUnlockAll   EndUnlockAll   SuspendUnlockAll     EndUnlockAll: the epoch is over
//
// So the survivors of a failure can close every epoch, and then the window. Abort… restores the state before Begin….
// After Suspend… the same call may be begun again and continues: a Fence and a Post have the same numbers again. The
// ranks that were notified are not notified once more: Notified has their number for a Complete and an UnlockAll,
// PostNotified for a Post. Until then, no other call can begin that the suspended call excludes. So after
// SuspendUnlockAll nothing but UnlockAll and exposures can begin, and after SuspendPost neither a Wait nor a Post to
// another group.
//
// Abandon ends everything when no rank is left to close an epoch with.
//
// # Numbers
//
// What ranks send each other is counted for each pair of ranks: the n-th Post of a target to an origin, the n-th
// Complete of an origin towards a target, the n-th Fence. A Start, Complete and Wait that belong together have the same
// n, because both sides count what both take part in. A count can stand in a word that its writer overwrites, or arrive
// in a message. Reached compares counts, also after they have wrapped, as long as no rank is 2^31 ahead.
//
// # Concurrency
//
// Open and Passive may be called from any goroutine at any time; they are atomic loads. Everything else, also Reject
// and Describe, is called under one mutex of the caller. The mutex need not be held between Begin… and the call that
// ends it. The words that Open reads close in Begin… of the closing call, or in Abandon, and open in End… of the
// opening call. An operation that checks Open after a closing call has begun is rejected. An operation that checked it
// before is not waited for: a program orders its operations before the call that completes them.
//
// The caller has checked that targets are ranks of the job.
package epoch
