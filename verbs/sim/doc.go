// Package sim is a simulated RDMA card in virtual time: thousands of ranks in one process,
// on the machine of a [Profile], with the same result whenever the seed is the same.
//
//	profile, err := sim.ByName("pcie-2005")
//	s, err := sim.New(profile, seed)
//	device := s.Open() // a verbs.Device for each rank
//	s.Go("rank 0", func() { … })
//	err = s.Run()
//
// # Time
//
// A [Simulator] has one clock and one queue of events. Ranks are tasks, of which exactly
// one runs at a time; the clock stands still while one can. When none can, the next event
// happens and moves the clock. These hold:
//
//  1. Each task has a clock of its own, which is never behind the simulator's. What the
//     task's processor does (to post, poll, copy, register, [Device.Compute]) moves only
//     that. Device.Now is it.
//  2. A request leaves at the poster's own time, which is not past. Since a task runs until
//     it waits, and every task that can run does before the clock moves, nothing is ever
//     scheduled for a time that has gone by.
//  3. What could be affected by others is preceded by settling: all events up to the
//     task's own time happen, and the tasks that they wake run, before a completion queue
//     or rings are polled, connections are polled, or something is closed. Memory is as it was at
//     the last settling: who waits for bytes polls, or sleeps on the channel, which is rung
//     by everything that the card brings.
//  4. Events at the same time happen in an order that the seed draws, but those of one
//     direction of a connection keep theirs.
//  5. Tasks wait for each other through devices only, and a device is used by tasks only
//     while Run runs. If all wait and nothing is left to happen, Run says so with a
//     [DeadlockError].
//
// Goroutines that are no tasks may use devices while Run does not run, all with one clock:
// sleeping on a channel then lets events happen, or passes as long in real time when there
// are none.
//
// # The card
//
// A write or a message of n bytes goes this way; names are those of [Profile]. Post,
// PostSegment for each further segment, and n/InlineRate if inline, are the processor's.
// Fetch (FetchInline) later it can leave, if what was posted before it on its queue pair
// has, and if the way out is free: that is taken for n/min(Link, Bus) + Gap +
// GapSegment for each further segment, and goes around the queue pairs by Burst bytes. Bus
// and link are crossed at once; a shared bus is also waited for while the other direction
// has it. Wire later the first byte is at the target, where the way in and its bus are
// taken in the same manner, in the order of arrival. Place after the last byte (and Receive
// if a receive must be found) the bytes are in memory. Wire + Acknowledge later the
// requester's completion is in its queue; Poll and Complete take it from there. So, alone:
//
//	write:   Post + Fetch + n/min(Link, Bus) + Wire + Place
//	         … + Wire + Acknowledge until its completion
//	message: write + Receive, and PostReceive, Poll and Complete of the receiver
//	read:    Post + Fetch + Wire + Place + TurnRead + n/min(Link, Bus) + Wire + Return
//
// Answers to reads share the responder's way out with its requests. At most MaxReads of a
// queue pair are under way; what is behind waits. A message that finds no receive is lost
// with everything behind it, and is sent again every StarvedWait + 2 Wire after its arrival
// (tries that would fail are left out, and take no time of the link). Packets have no
// headers, the network no bound to what it holds, and acknowledgements take no bandwidth.
//
// Bytes of a write are placed burst by burst, those of a read are taken from the
// responder's memory burst by burst when they leave it.
//
// # Faults
//
// [Simulator.Inject] has a [Fault] come at a time, or right after an event of a number; [Plan]
// draws a list of them from a seed, which can be printed, kept, and read by [ParseFaults].
// The same seed and the same plan are the same run, and the faults are in its trace. These
// hold:
//
//  1. A rank is its [Device] and the tasks of [Device.Go], with those that they begin. When
//     it is killed its device is closed at once, and what it had sent and not yet placed
//     is lost. Its tasks go on, before time does, to where they next sleep on a channel,
//     and end there as by runtime.Goexit. What they, and their deferred functions, still
//     ask of any device has no effect, and is answered as by one that is closed. So they
//     must not wait otherwise than by sleeping.
//  2. Its peers hear nothing. A request to it stays unanswered, and RetryTime after it was
//     sent, or after the last that was answered, completes with
//     verbs.StatusRetryExceeded, which fails its queue pair; its error wraps
//     verbs.ErrPeerGone. A queue pair with no request under way notices nothing, but
//     Watch tells Notice, or after a loss of power Silence, later.
//  3. A direction of a link stays in order: what is delayed or stalled is overtaken by
//     nothing. What is on the wire already when its sender's link stalls arrives. If an
//     answer does not come within RetryTime for a stall or a delay, that is as 2.
//  4. A processor is slow, and memory refused, by the clock of the task that computes or
//     registers, to the nanosecond; everything else comes by the simulator's clock.
package sim
