// Package scheduler plans how the operations of an epoch cross the wire; it is for layers over package verbs that defer
// operations. To a target whose memory is not mapped, operations wait in a [Queue] until a synchronization, or until
// waiting would cost more than it saves. A [Planner] then arranges them into a [Plan]. The schemes are those of Huang,
// Santhanaraman, Jin and Panda, "Scheduling of MPI-2 One Sided Operations over InfiniBand" (CAC 2005), section 4: see
// [Scheme]. A [Learner] finds out which of them pay for a [Pattern] of epochs. The paper leaves this to future work
// (section 7).
//
// The package is pure: it knows no wire, no clock and no goroutine.
//
// # Invariants
//
//   - A plan has every operation of the queue once.
//   - Accumulates, fetches and swaps keep their order, whatever the scheme. So those of one origin to one location take
//     effect in program order. Puts and gets of an epoch have no order.
//   - A notification comes after all operations that were called before it.
//   - Nothing is allocated once queue and plan have reached their final length.
//   - A Learner chooses a scheme for one pattern of epochs, or for several that alternate. If an epoch outgrows the one
//     pattern, [Planner.Outgrown] returns a planner with the initial scheme.
//   - A Learner uses no single scheme outside its initial scheme. In a simulation with noise it stays within 5 % of
//     the scheme that is best for all epochs. Its trials lose at most about 2 % of the time of a long run.
package scheduler
