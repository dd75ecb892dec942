// Package traced is a card around another that notes what passes through it, for a file that
// ui.perfetto.dev and chrome://tracing open.
//
//	device, trace := traced.New(inner, traced.Options{})
//	… use device in the place of inner …
//	err := timeline.Append("t.json", job, trace.Began(), func(w *timeline.Writer, origin time.Time) {
//		trace.Write(w, 0, "rank 0", origin)
//	})
//
// The device has the abilities of the inner one, and nothing that is asked of it is done
// otherwise. A rank has these lanes, as many of each as it takes for what overlaps:
//
//   - program: the spans that the program has added.
//   - processor: calls of PostSend; polls in which something came, called serve if that was
//     for peers only; and sleeps, of which several are one if there was nothing between them
//     but looks that found nothing. Those of several goroutines may overlap.
//   - out: messages and writes, from when they were posted until their completion was polled.
//     One that asked for none is over with the next one of its queue pair that did; but if
//     that was posted later than it then took, this says too little, and there is only a mark
//     where the one was posted.
//   - in: reads and atomics, likewise; and a mark where the completion of a receive was
//     polled.
//
// So a request lasts longer here than on the wire: it begins before it leaves, and ends when
// somebody looks. Loads and stores of mapped memory ([verbs.Mapper]) do not pass through the
// card, and are not seen. Where goroutines post to a queue pair at once the order of their
// requests may be told wrong.
//
// # Bounds
//
// Requests that are over, calls and spans are kept in three rings of [Options].Records each.
// In one that is full the oldest is lost, and a mark in the file says how many were. What is
// outstanding is kept beside them; once that has its size nothing is allocated. A call costs
// a look or two at the clock and a short lock more than that of the inner card.
package traced
