// Package jobtest is the harness for tests of jobs: it runs the body of a test on every rank, over each device of the
// module.
//
//	var sums = jobtest.Register("sums", func(ctx context.Context, w *world.World) error {
//		...
//	})
//
//	func TestMain(m *testing.M) { jobtest.Main(m) }
//
//	func TestSums(t *testing.T) { jobtest.Everywhere(t, 4, sums) }
//
// A body reports by its error, because a rank in another process has no test to fail. The example of the package is a
// whole test.
//
// # Forms
//
// A form says what the ranks are and how they reach each other. Each has a function that runs a registered body. Some
// have a function that starts the body as a Job, for a test that intervenes:
//
//	Goroutines   goroutines of the test, which map each other's memory
//	Apart        goroutines which do not: all goes by messages, writes and reads
//	Cards        as Apart, with cards that have atomics
//	Simulated    tasks with simulated cards, in virtual time
//	Processes    processes that share memory                           Start
//	TCP          processes that reach each other over TCP              StartWith, with RMA_DEVICE=tcp
//	Hosts        processes that act as if on two hosts                 StartWith, with RMA_HOST
//	Namespaces   processes on hosts of a network of their own          StartAcross
//
// Run runs a body in five of them, InTurns in these with several numbers of ranks, and Everywhere in all. Processes
// need Linux, and Namespaces root. Elsewhere the tests are skipped, with the reason.
//
// A rank that is a process fails if it leaves goroutines, descriptors or shared memory behind. This is checked when its
// body has returned nil and its World is closed.
//
// # Points
//
// A body whose ranks are processes can report where it is, and wait there for the test. In other forms these
// functions do nothing:
//
//	Signal          the rank has reached a point, for which Job.Await waits
//	SignalParked    the rank sleeps in a call
//	Hold            as Signal, and the rank continues after Job.Release
//
// # Interventions
//
// A test does these to a rank of a Job, or to a host of a Job from StartAcross. Each returns when it is done:
//
//	Job.Kill        SIGKILL. Job.Killed kills one rank and requires success of all others
//	Job.Stop        SIGSTOP. A body stops its own rank by Stop, for which Job.AwaitStop waits
//	Job.Continue    SIGCONT
//	Job.Cut         the link of a host goes down
//	Job.Join        the link is up again, and carries packets
//
// In its own process a body can make the kernel reject system calls (Refuse), and reset connections
// (ResetConnections).
//
// # Waiting
//
// A test waits for a state, never for a time:
//
//	Job.Await       a rank at a point
//	Job.AwaitStop   a rank that is stopped
//	Job.AwaitState  any other state, while a rank's process exists
//	Job.AwaitEnd    the end of a rank, with its error
//	Job.Wait        the end of all ranks, with their errors
//
// Bodies wait by package await. A wait that lasts for minutes is a hang: the ranks then print the stacks of their
// goroutines, and the test fails with those. Script.Sleeps checks that a rank sleeps while it waits.
//
// # Parallel tests
//
// Tests that only wait run in parallel by t.Parallel, and others by a Limit of their kind. SideBySide, called by
// TestMain, allows more parallel tests than there are cores.
package jobtest
