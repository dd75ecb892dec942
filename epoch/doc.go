// Package epoch decides which calls on a window are legal now, and what must have
// arrived from which rank before one of them returns. It is a state machine of one
// rank on one window, and nothing else: no clock, no socket, no goroutine, no lock.
// Package window moves the flags or messages and does the waiting.
//
//	s := epoch.New(rank, size)
//	number, err := s.BeginFence(0)    // refused, or: tell every rank number,
//	...                               // and wait until every rank has told it
//	s.EndFence(0)                     // the epoch is open
//	s.Open(target)                    // may an operation go to target?
//
// # Epochs
//
// An operation needs an access epoch to its target. A rank has at most one kind of
// them open at a time:
//
//	opened by          closed by           to                 together with
//	Fence              Fence(NoSucceed)    every rank         nothing else
//	Start              Complete            the group          an exposure
//	Lock, of several   Unlock of each      locked targets     an exposure
//	LockAll            UnlockAll           every rank         an exposure
//
// An exposure to a group is opened by Post and closed by Wait, or by a Test that
// tells so. A fence epoch is access and exposure to every rank; a Fence that is not
// NoSucceed closes one and opens the next.
//
// Flush needs a lock on its target, FlushAll a lock on any. Sync needs only a
// window that is not closed, which is more than MPI allows, so it is not asked
// about here. Close needs that nothing is open or in progress.
//
// The assertions NoPut, NoStore and NoPrecede are hints that change nothing here: to
// find an operation in an epoch that NoPrecede calls empty, each operation would
// have to leave a mark. NoSucceed leaves no epoch open.
//
// # Calls in two steps
//
// A call that may block is two calls here. Begin… refuses it, with a *CallError and
// nothing changed, or records that it is in progress; then no other goroutine can
// begin it (ErrBusy). What ends it says how it went:
//
//	begun            done           its context ended    a rank that it needs has failed
//	BeginFence       EndFence       SuspendFence         FailFence: no epoch is open
//	BeginStart       EndStart       AbortStart           AbortStart: nothing was opened
//	BeginComplete    EndComplete    SuspendComplete      EndComplete: the epoch is over
//	BeginPost        EndPost        -                    EndPost: the others are exposed to
//	BeginWait        EndWait        SuspendWait          EndWait: the exposure is over
//	BeginLock        EndLock        AbortLock            AbortLock: nothing was opened
//	BeginUnlock      EndUnlock      SuspendUnlock        EndUnlock: the epoch is over
//	BeginLockAll     EndLockAll     AbortLockAll         AbortLockAll: nothing was opened
//	BeginUnlockAll   EndUnlockAll   -                    EndUnlockAll: the epoch is over
//
// So the survivors of a failure can close every epoch, and then the window. Abort…
// goes back to before Begin…. After Suspend… the same call may be begun again and
// continues: a Fence has the same number again, of a Complete Told remembers whom it
// has told; until then nothing else can be begun that the call stood in the way of.
//
// Abandon ends everything where there is nobody left to close an epoch with.
//
// # Numbers
//
// What ranks tell each other is counted, for each pair of ranks by itself: the n-th
// Post of a target to an origin, the n-th Complete of an origin towards a target, the
// n-th Fence. Start, Complete and Wait that belong together have the same n, because
// both sides count what both take part in. A count can stand in a word that its
// writer overwrites, or come in a message: Reached compares it, also when it has
// wrapped, as long as no rank is 2^31 ahead.
//
// # Concurrency
//
// Open and Passive may be called from any goroutine at any time; they are atomic
// loads. Everything else, Refuse and Describe too, is called under one mutex of the
// caller's, which need not be held between Begin… and what ends it. The words that
// Open reads change in only these places: they close in Begin… of the closing call
// and open in End… of the opening one. An operation that asks after a closing call
// was begun is refused; one that asked before it is not waited for: a program orders
// its operations before the call that completes them.
//
// Targets are ranks of the job: the caller has checked them.
package epoch
