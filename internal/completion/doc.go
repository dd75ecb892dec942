// Package completion keeps the completions of a device that polls for them itself:
// the bounded queue that is behind a verbs.CompletionQueue, without whatever drives
// the device and whoever sleeps.
//
//	queue, err := completion.New(capacity) // CreateCompletionQueue
//	…
//	room := queue.Push(&c)                 // a work request ended
//	bell.Ring()
//	…
//	n := queue.Take(into)                  // Poll, once the device was driven
//
// What holds:
//
//   - Completions are taken in the order in which they were pushed.
//   - At most the capacity wait at a time. A queue that has had no room has none for
//     good, though some be taken: what came later must not look as if all had come.
//   - So that nobody waits for ever, each queue pair says a last word all the same,
//     beyond the capacity: that which had no room first, as a failure.
//   - A queue closes only when no queue pair uses it, and then takes no other.
//   - Every method may be called from any goroutine. None blocks, or calls anything of
//     the caller's. To take from an empty queue takes no lock.
//   - Memory is taken only for more completions than were ever held at once, and for
//     last words, so that the large queue of a job costs no more than what is heard in it.
package completion
