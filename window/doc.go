// Package window is what a program holds: memory that every rank of a job exposes
// to the others as typed elements, the operations on it, and the calls that
// synchronize them.
//
//	win, err := window.Allocate[float64](ctx, w, 1000)
//	...
//	err = win.Fence(ctx)                 // opens an epoch on every rank
//	err = win.Put(values, target, 10)    // to elements 10, 11, … of target's part
//	err = win.Fence(ctx)                 // closes it: every rank sees every Put
//	fmt.Println(win.Local()[10])
//	err = win.Fence(ctx, window.NoSucceed)
//	err = win.Close()
//
// # Epochs
//
// An operation needs an access epoch to its target. There are three kinds:
//
//   - Fence closes one epoch and opens the next, on all ranks; with NoSucceed it
//     opens none.
//   - Start…Complete at the origins and Post…Wait (or Test) at the targets, for
//     named groups of ranks.
//   - Lock…Unlock of one target, shared or exclusive, and LockAll…UnlockAll: the
//     target's program takes no part. Flush completes operations meanwhile, and RFlush
//     without waiting for it: of several targets side by side.
//
// Within an epoch puts and gets are unordered. Accumulates from one origin to one
// location keep their program order. An element that is put to must not be
// otherwise accessed in the same epoch; elements that are accumulated to may be,
// by anyone, through the accumulate family.
//
// # Completion
//
//	after                     holds
//	Fence, Unlock, Flush      operations are complete at the target, for everyone to see
//	Wait of RFlush's request  those before the RFlush are
//	Complete, FlushLocal      origin buffers are the program's again, results are valid
//	Wait                      all operations of that exposure are in window memory
//
// A buffer passed to an operation belongs to the library until then. A call that returns
// an error has completed nothing: buffers may yet be read and written. After the error of
// a context they are the program's once the call, made again, succeeds; after another one
// they should not be used again. Target may
// be the own rank everywhere, and zero-length operations are legal and free.
//
// # Blocking and failure
//
// Calls that may block take a context, which is looked at only once they have to
// block. One that returns the context's error has not completed and may be called
// again: Fence, Complete, Wait, Unlock, Allocate, Create and Attach continue; Start, Lock and
// LockAll have opened nothing. UnlockAll ends the epoch whatever becomes of the context.
// Operations, Post and the call that takes a lock back whose context has ended have none:
// where a rank over a network takes no more messages they wait for room, at most as long as
// it may be silent. An accumulate of many bytes, a PutNotify, or an operation where many are
// queued may wait for the lock or the post of its target, which Lock and Start over a network
// do not wait for. A process that is short of descriptors for a new
// connection has its calls return a verbs.ErrShortage, after which they may be called
// again; Post, UnlockAll, an Unlock that has its lock, and an operation of which a part has
// left wait until it has some.
//
// The death of a rank ends every call that needs it with a *world.PeerError, in
// bounded time, and the epoch with it: the survivors can close the window. A Fence
// in which a rank dies may have ended on some ranks and fail on others.
// Locks that the dead held are broken. A rank that waits for a survivor, which has given up because
// of the dead, is told when that closes the window (ErrParted), so close it before you wait for
// others, in Shrink or elsewhere. Misuse of what a rank can see for itself is an error at the call, with
// nothing changed. A window is closed with its World at the latest; calls are an
// epoch.ErrClosed then.
//
// # Mapped memory
//
// Where the target's memory is mapped in this process an operation is a check and
// a copy, and complete when it returns; nothing is allocated. The exception are
// accumulates of one element to large parts, which are held back a few at a time
// (option Immediate). Bytes outside the accumulate family may be seen half written
// by a program that reads them before the synchronization. Shared gives the memory itself,
// for the processor to work on without calls.
//
// # Memory that is not mapped
//
// Operations on a rank that shares no memory with this one are deferred: they wait until a
// call has to complete them, or blocks, or enough of them wait, and the library decides how
// they cross the wire (package scheduler). Longer ones go direct, small ones together, with
// the synchronization (package aggregate): also with the lock under which they are done, or
// with the end of an epoch of Start, so that Lock and Start do not wait there. An operation
// that its target refuses is a *world.RejectionError of the call that completes it, which names
// the operation; the others are carried out. Complete, which waits for nothing where nothing
// was read, leaves that to a later call on the same window. Each window learns, for each rank,
// which ways of arranging operations pay (scheduler.Learner).
// The option Without leaves out one way or another to arrange operations.
//
// # Served windows
//
// Serve has programs that are not ranks of the job use this rank's part of a window: clients, which
// attach to it by a name (Attach), in a World of their own with this rank (world.Dial). For that the window is made with
// Seats. A client has what needs nobody else's calls: locks, and operations between them. In the words of locks
// its seat stands behind the ranks. What it holds is given back when it leaves or dies.
//
// # What happens
//
// Stats counts what was done to a window and how it travelled. Misuse that this package
// cannot refuse at the call, because it shows only beside another, is found with
// world.WithDebug: a *MisuseError names both. A *world.Event for each operation goes to who
// asks for it by world.WithHook.
//
// # Cards with atomics
//
// RDMA cards add to words of 8 bytes and swap them by themselves. Most are atomic only to each
// other, and not to the instructions of processors, so a window leaves the accumulate family to them
// only if it was made with CardAtomics, and then all of it, also what a rank does to its own part.
package window
