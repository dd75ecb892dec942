// Package completion implements the bounded queue of a verbs.CompletionQueue for devices that generate their
// completions themselves. It does not drive the device and wakes no sleeper.
//
//	queue, err := completion.New(capacity) // CreateCompletionQueue
//	…
//	room := queue.Push(&c)                 // a work request ended
//	channel.Wake()
//	…
//	n := queue.Take(into)                  // Poll, once the device was driven
//
// Invariants:
//
//   - Completions are taken in the order in which they were pushed.
//   - At most capacity completions wait at a time. A queue that once had no room never has room again, even after
//     completions were taken: otherwise lost completions would go unnoticed.
//   - In a full queue each queue pair still gets one final completion beyond the capacity, so that no caller waits for
//     ever. It is the first completion without room, as a failure.
//   - A queue closes only when no queue pair uses it. A closed queue takes no queue pair.
//   - Every method may be called from any goroutine. None blocks or calls code of the caller. Take from an empty queue
//     takes no lock.
//   - Memory grows only with the number of completions that wait at once, and for final completions. So a large
//     capacity costs nothing by itself.
package completion
