package tcp

// An Optimization is one that Options.Without leaves out, so that it can be measured
// against its absence.
type Optimization uint16

const (
	// Batches send several requests and answers by one system call.
	Batches Optimization = 1 << iota
	// Favour looks at the connection that was heard last oftener than at the others.
	Favour
	// Dwelling looks at that connection dwellLooks times in a poll, if Dwell says so.
	Dwelling
	// HeaderReads read the header that follows a long payload alone, so that the next
	// long payload goes to its place and none of it through a buffer.
	HeaderReads
	// FewSockets waits for few sockets without epoll, on systems that have it.
	FewSockets
	// Copies of payloads of up to 512 bytes go behind their header; else all go as
	// vectors.
	Copies
	// Reno has connections within a machine keep to the oldest congestion control: nothing is
	// congested there, and others measure and pace what is sent. For Linux.
	Reno
	// Riding has the acknowledgement of a message wait, until the next poll or 50 ms, for a frame that
	// goes to its sender anyway.
	Riding

	allOptimizations = Batches | Favour | Dwelling | HeaderReads | FewSockets | Copies | Reno | Riding
)

// has reports whether an optimization is not left out.
func (o *Options) has(one Optimization) bool { return o.Without&one == 0 }
