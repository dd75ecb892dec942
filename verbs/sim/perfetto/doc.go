// Package perfetto writes what simulated cards and programs do as a file that ui.perfetto.dev and chrome://tracing
// open: JSON in the Trace Event Format. It is for programs that run with world.Simulate.
//
//	trace := perfetto.NewWriter(file)
//	s.Trace(trace.Event) // s is a *sim.Simulator
//	… run …
//	trace.Span(0, "fence", begun, ended)
//	err = trace.Close()
//
// Each rank is a process with these lanes:
//
//   - program: the calls of the library that the program is in, and its own spans.
//   - processor: what tasks had the rank's processor do, and where they slept. There are several lanes if tasks of a
//     rank overlap.
//   - link out, link in: what passes each direction of the rank's link, with its bytes and the rank at the other end. A
//     gap is time in which a card had to wait.
//
// Moments, such as the placement of bytes, are marks: those of requests and completions on the lanes link in and
// processor, with the ends of closed queue pairs; faults and failures across all lanes of a rank.
//
// Events are written as they come, and not in the order of time, which both viewers accept. Nothing is kept of them.
// The same events give the same bytes.
package perfetto
