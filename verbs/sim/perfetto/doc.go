// Package perfetto writes what simulated cards do, and what programs do meanwhile, as a file
// that ui.perfetto.dev and chrome://tracing open: JSON in the Trace Event Format.
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
//   - processor: what tasks had the rank's processor do, and where they slept. Where tasks
//     of a rank do so at one time there are as many lanes as it takes.
//   - link out, link in: what passes each direction of the rank's link, with its bytes and
//     the rank at the other end. What a card had to wait for is a gap.
//
// Moments, as when bytes are placed, are marks on a lane: those of requests and completions
// on link in and processor, with the ends of queue pairs that are closed; faults and failures across all of a rank's lanes.
//
// Everything is written as it comes, in an order that is not that of time, which neither
// viewer minds; nothing is kept of it. The same events are the same bytes.
package perfetto
