// Package scheduler decides how the operations of an epoch cross the wire: on a route that
// is not mapped memory they wait in a [Queue] until a synchronization, or until waiting
// would cost more than it saves, and a [Planner] arranges them. It is pure: operations in,
// a [Plan] out; it knows no wire, no clock and no goroutine. The ways to arrange them are
// those of "Scheduling of one-sided operations" (section 4): see [Scheme]. A [Learner] finds
// out which of them pay for a [Pattern] of epochs, which the paper leaves to future work
// (section 7).
//
// # Invariants
//
//   - A plan has every operation of the queue once.
//   - Accumulates, fetches and swaps keep their order, whatever the scheme: those of one
//     origin to one location take effect in program order. Puts and gets of an epoch have
//     none.
//   - A notification comes after all that was called before it.
//   - Nothing is allocated once queue and plan are as long as they get.
//   - A Learner takes no way that it was not made with. It stays within 5 % of the scheme
//     that is best for all epochs, as far as a simulation with noise can tell, and its
//     trials lose no more than about 2 % of the time of a long run.
package scheduler
