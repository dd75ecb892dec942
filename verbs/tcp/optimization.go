package tcp

// An Optimization is an optimization that Options.Without can switch off, to measure its effect.
type Optimization uint16

const (
	// Batches sends several requests and responses in one system call.
	Batches Optimization = 1 << iota
	// PollRecent polls the connection that received last more often than the others.
	PollRecent
	// HeaderReads reads the header that follows a long payload alone, so that the next long payload is read directly to
	// its destination.
	HeaderReads
	// FewSockets waits for few sockets without epoll, on systems that have it.
	FewSockets
	// Copies copies payloads of at most 512 bytes after their header. Without it all payloads are passed as vectors.
	Copies
	// Reno makes connections within a machine use the oldest congestion control. Nothing is congested there, and other
	// algorithms measure and pace the output. It is for Linux.
	Reno
	// DelayedAcknowledgements delays the acknowledgement of a message until the next poll, at most 50 ms, so that
	// another frame to its sender can carry it.
	DelayedAcknowledgements

	allOptimizations = Batches | PollRecent | HeaderReads | FewSockets | Copies | Reno | DelayedAcknowledgements
)

// has reports whether an optimization is on.
func (o *Options) has(one Optimization) bool { return o.Without&one == 0 }
