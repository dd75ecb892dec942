// Package window gives every rank of a job typed memory that the others put to, get from and accumulate into, and the
// calls that synchronize them.
//
//	win, err := window.Allocate[float64](ctx, w, 1000)
//	...
//	err = win.Fence(ctx)                 // opens an epoch on every rank
//	err = win.Put(values, target, 10)    // to elements 10, 11, … of target's part
//	err = win.Fence(ctx)                 // completes it: every rank sees every Put
//	fmt.Println(win.Local()[10])
//	err = win.Fence(ctx, window.NoSucceed)
//	err = win.Close()
//
// # Epochs
//
// An operation needs an access epoch to its target. There are three kinds:
//
//   - Fence closes one epoch and opens the next, on all ranks. With NoSucceed it opens none.
//   - Start…Complete at the origins and Post…Wait (or Test) at the targets, for named groups of ranks.
//   - Lock…Unlock of one target, shared or exclusive, and LockAll…UnlockAll: the target's program takes no part. Flush
//     completes operations within the epoch. RFlush starts a flush and returns a Request, so several targets can be
//     flushed at the same time. LockNow returns when the lock is held.
//
// A function that only synchronizes takes a [Synchronizer], and so windows of any type.
//
// Within an epoch puts and gets are unordered. Accumulates from one origin to one location keep their program order.
//
// Two operations on one element conflict if one of them is a Put, or if one is a Get and the other changes the element
// by the accumulate family. Loads of the owner count as gets, and its stores as puts. Between two conflicting
// operations there must be the end of an epoch, a flush that completes the first one, or the notification of a
// PutNotify. Operations of the accumulate family never conflict with each other. An atomic read is GetAccumulate or
// FetchAndOp with [NoOp]. An operation of several elements is not atomic as a whole.
//
// # Completion
//
//	after                       holds
//	Fence, Unlock, UnlockAll,   operations are complete at the target, visible to every rank
//	Flush, FlushAll
//	Wait of RFlush's Request    operations before the RFlush are complete at the target
//	Wait of another Request     the buffers of its operation belong to the program again, its result is valid
//	Complete, FlushLocal,       origin buffers belong to the program again, results are valid
//	FlushLocalAll
//	Wait of the Window          all operations of the exposure are in window memory
//
// WaitAll, WaitAny and Completed wait for several requests.
//
// A buffer passed to an operation belongs to the library until such a call has returned. A call that may be made again
// (see Blocking and failure) has not completed its operations: the buffers belong to the program once the call, made
// again, succeeds. A wrong call changes nothing, except a Close that returns [ErrNotPosted]. After a *world.RejectionError all other operations are
// complete. After a *world.PeerError, or any other error, the program must not use the buffers again. An error of
// WaitAll or Completed concerns only the buffers of the requests that failed.
//
// A rank may be its own target. Zero-length operations are legal and free.
//
// # Blocking and failure
//
// Calls that may block take a context. If its context ends while a call waits, the call returns the error of the
// context. The epoch is then as the call's doc says, and the call may be made again. Fence, Complete, Post, Wait,
// Unlock, UnlockAll, CloseContext, Allocate, Create and Attach go on where they stopped. Start, Lock, LockNow and
// LockAll have opened nothing, and begin anew. A call that does not have to block may succeed although its context has
// ended.
//
// If the context has a cause, the error wraps that, too. A program may cancel its calls with a *world.PeerError as the
// cause. Such an error does not end the epoch, which is as after any other cause.
//
// A Complete, Post, Unlock or UnlockAll whose context ends returns only that error. The call that continues returns the
// other errors, such as what a target has rejected. Fence, FlushAll, FlushLocalAll and WaitAll join such errors to that
// of the context, and return each of them once.
//
// Operations take no context. An operation waits for room if its target over a network accepts no more messages, at
// most for the time of world.WithPeerTimeout. So do LockNow and LockAll when they withdraw the requests for locks that
// they did not get. A long accumulate, a PutNotify, and an operation behind many queued ones may wait for the lock or
// the post of the target, for which Lock and Start have not waited over a network.
//
// Calls that need a new connection return verbs.ErrShortage when the process is out of file descriptors, and may be
// made again as if their context had ended. An operation that has partly left waits for a descriptor. If the message of
// a Complete, Post, Unlock or UnlockAll cannot be sent for another reason, such as memory that the card rejects, the
// call returns an error, and another one continues, as after the end of a context. Until then the epoch is being
// closed, or the exposure opened: the docs of these calls say what is legal.
//
// The death of a rank ends every call that needs it with a *world.PeerError, in bounded time, and the epoch with it.
// The survivors can then close the window. A Fence in which a rank dies may succeed on some ranks and fail on others.
// Locks of the dead are broken. When a survivor closes the window, ranks that wait for it get ErrDeparted. To give a
// window up, close it before any other call that waits, such as Shrink.
//
// Misuse that a rank can see for itself is an error at the call, which changes nothing. A window is closed with its
// World at the latest. Calls then return ErrClosed.
//
// # Mapped memory
//
// Where the target's memory is mapped in this process, an operation is a check and a copy, and is complete when it
// returns. Nothing is allocated. Accumulates of one element to large parts are an exception: a few at a time are held
// back (see [Immediate]). A program that reads memory before the synchronization may see half-written bytes, except of
// the accumulate family. [Window.Mapped] returns the memory itself.
//
// # Memory that is not mapped
//
// Operations on a rank that shares no memory with this one are deferred. They wait until a call has to complete them or
// blocks, or until enough of them have gathered. The library decides how they cross the wire (package scheduler). Long
// ones go direct. Small ones go together, with the synchronization (package aggregate). The lock under which they are
// done goes with them, too, so that Lock and Start do not wait there. Each window learns, for each rank, which schemes
// of arranging operations pay (scheduler.Learner).
//
// An operation that its target rejects is a *world.RejectionError of the call that completes it. The error names the
// operation; the others are applied. Complete does not wait for the response of a target from which it has read
// nothing. A later call on the same window then returns the error.
//
// # Served windows
//
// Serve lets programs that are not ranks of the job use this rank's part of a window. Such a client attaches to it by a
// name (Attach), over a World of two that world.Dial returns. The window needs Seats for its clients. A client has
// locks, and operations between them, which need no call of another rank. What a client holds is given back when it
// leaves or dies.
//
// # Observing
//
// Stats counts what was done to a window and how it travelled. world.WithDebug finds conflicting operations: a
// *MisuseError names both. world.WithHook calls a function with a *world.Event for each operation.
//
// # Cards with atomics
//
// RDMA cards add to words of 8 bytes, and swap them, by themselves. Most of these atomics are atomic only to each
// other, and not to the instructions of processors. So only a window that is made with [CardAtomics] leaves accumulates
// to cards. Such a window takes Sum, NoOp and CompareAndSwap on 64-bit integers. If all ranks have cards with atomics,
// these apply all of them, also what a rank does to its own part. Where cards and processors are atomic to each other,
// the processor applies those on mapped memory.
package window
