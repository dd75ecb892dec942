// Package traced wraps verbs devices: it records what passes through a device, for a file that ui.perfetto.dev and
// chrome://tracing open; it is for package job, whose programs have world.WithTrace.
//
//	device, trace := traced.New(inner, traced.Options{})
//	… use device in the place of inner …
//	err := timeline.Append("t.json", job, trace.Began(), func(w *timeline.Writer, origin time.Time) {
//		trace.Write(w, 0, "rank 0", origin)
//	})
//
// The device has the optional interfaces of the inner device and passes every call on unchanged. A rank has these
// lanes, several of each where events overlap:
//
//   - program: the spans that the program has added.
//   - processor: calls of PostSend; polls in which something arrived, named serve if it was only for peers; and sleeps.
//     Consecutive sleeps with only empty polls between them are one. The sleeps of several goroutines may overlap.
//   - out: messages and writes, from the post until the poll of their completion. An unsignalled request ends with the
//     next signalled one of its queue pair. If that was posted later than it then took, this says too little, and there
//     is only a mark at the post.
//   - in: reads and atomics, likewise; and a mark where the completion of a receive was polled.
//
// So a request lasts longer here than on the wire: it begins before it leaves, and ends with a poll. Loads and stores
// of mapped memory ([verbs.Mapper]) do not pass through the device and are not recorded. If several goroutines post to
// a queue pair at once, the recorded order of their requests may be wrong.
//
// # Bounds
//
// Completed requests, calls and spans are kept in three rings of Options.Records each. A full ring loses its oldest
// record, and a mark in the file has the number of lost records. Outstanding requests are kept apart. Once their list
// has its final size, nothing is allocated. A call costs one or two reads of the clock and a short lock more than a
// call of the inner device.
package traced
