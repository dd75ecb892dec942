// Package sim is the verbs.Device over a simulated RDMA card in virtual time; it is for programs and tests that run with
// world.Simulate. It runs thousands of ranks in one process, on the machine of a [Profile].
// The result is the same whenever the seed is the same.
//
//	profile, err := sim.ByName("pcie-2005")
//	s, err := sim.New(profile, seed)
//	device := s.Open() // a verbs.Device for each rank
//	s.Go("rank 0", func() { … })
//	err = s.Run()
//
// # Time
//
// A [Simulator] has one clock and one queue of events. Ranks are tasks, of which exactly one runs at a time. The clock
// stands still while one can run. When none can, the next event happens and moves the clock. These rules hold:
//
//  1. Each task has its own clock, which is never behind the simulator's. The work of the task's processor (to post,
//     poll, copy, register, [Device.Compute]) moves only that clock, which Device.Now returns.
//  2. A request leaves at the poster's own time, which is never in the past. A task runs until it waits, and every task
//     that can run does so before the clock moves. So nothing is ever scheduled for a past time.
//  3. Operations that other ranks can affect are preceded by settling: all events until the task's own time happen, and
//     the tasks that they wake run. Such operations are polling a completion queue, rings or connections, and closing.
//     Memory is as it was at the last settling. A task that waits for bytes polls, or sleeps on the channel, which
//     everything that the card brings rings.
//  4. Events at the same time happen in an order that the seed determines, except that those of one direction of a
//     connection keep their order.
//  5. Tasks wait for each other only through devices, and only tasks use devices while Run runs. If all wait and no
//     event is left, Run returns a [DeadlockError].
//
// Other goroutines may use devices while Run does not run, all with one clock. Sleeping on a channel then lets events
// happen. If there are none, it takes that long in real time.
//
// # The card
//
// A write or a message of n bytes takes these steps; names are those of [Profile]:
//
//   - The processor takes Post, PostSegment for each further segment, and n/InlineRate if inline.
//   - The request can leave Fetch (FetchInline) later, if earlier requests of its queue pair have left and the output
//     is free. It occupies the output for n/min(Link, Bus) + Gap + GapSegment for each further segment. Queue pairs
//     alternate after Burst bytes. Bus and link are crossed at once. A shared bus is also occupied by the other
//     direction.
//   - Wire later the first byte is at the target. It occupies the input and its bus in the same manner, in the order of
//     arrival.
//   - Place after the last byte (and Receive if a receive must be found) the bytes are in memory.
//   - Wire + Acknowledge later the requester's completion is in its queue. Poll and Complete take it from there.
//
// So a single operation takes:
//
//	write:   Post + Fetch + n/min(Link, Bus) + Wire + Place
//	         … + Wire + Acknowledge until its completion
//	message: write + Receive, and PostReceive, Poll and Complete of the receiver
//	read:    Post + Fetch + Wire + Place + TurnRead + n/min(Link, Bus) + Wire + Return
//
// Responses to reads share the responder's output with its requests. At most MaxReads reads and atomics of a queue pair
// are outstanding; later requests wait. A message that finds no receive is lost with everything after it. It is sent
// again every StarvedWait + 2 Wire after its arrival; tries that would fail are left out, and take no time of the link.
// Packets have no headers, the network holds any amount, and acknowledgements take no bandwidth.
//
// The bytes of a write are placed burst by burst. Those of a read are taken from the responder's memory burst by burst
// when they leave.
//
// # Faults
//
// [Simulator.Inject] makes a [Fault] happen at a time, or right after the event of a number. [Plan] draws a list of
// faults from a seed. The list can be printed, kept, and read by [ParseFaults]. The same seed and the same plan give
// the same run, and the trace has the faults. These rules hold:
//
//  1. A rank is its [Device] and the tasks of [Device.Go], with the tasks that they begin. When it is killed its device
//     is closed at once, and what it had sent and was not yet placed is lost. Before time continues, its tasks run
//     until they next sleep on a channel, and end there as by runtime.Goexit. Their calls of devices until then, also
//     in deferred functions, have no effect and return as on a closed device. So they must wait only by sleeping.
//  2. Its peers are not notified. A request to it stays unanswered. RetryTime after it was sent, or after the last
//     answered request, it completes with verbs.StatusRetryExceeded, which fails its queue pair; the error wraps
//     verbs.ErrPeerGone. A queue pair without an outstanding request detects nothing, but Watch reports the death after
//     Notice, or after Silence if power was lost.
//  3. A direction of a link stays in order: nothing overtakes what is delayed or stalled. What is already on the wire
//     when its sender's link stalls arrives. If a stall or a delay keeps a response away for RetryTime, rule 2 applies.
//  4. Slow processors and rejected memory follow the clock of the task that computes or registers, to the nanosecond.
//     All other faults follow the simulator's clock.
package sim
