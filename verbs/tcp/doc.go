// Package tcp is the verbs.Device over TCP; package world opens it by itself. A program imports it to open a device with
// other options, for world.WithNetwork. Peers are on this machine or on others.
//
//	device, err := tcp.Open(tcp.Options{Listen: "10.0.0.7:0", Key: key})
//	…
//	pair, err := device.Connect(peer.Address(), nil, config)
//
// # Progress
//
// A queue pair is one TCP connection. No goroutine serves it: the device makes progress when a goroutine posts, or
// polls any of its completion queues. Its Channel sleeps on the sockets. The device must be polled at least once per
// Options.Silence, or its peers presume this rank dead. There is one goroutine that listens. Others exist only while a
// connection is made or the Logger is called.
//
// A request is one frame or several, each a header and at most 256 KiB of payload. Requests that are posted together
// leave in one system call per 256 KiB, with payloads from the program's memory. At the peer, the payload of a write is
// read directly into the window, and that of a read response into the origin's segments. Only the part that arrives in
// the same 8 KiB as its header is copied. The sizes of headers, in bytes:
//
//   - send: 24
//   - write, read: 36
//   - fetch and add: 40
//   - compare and swap: 48
//   - read response: 20
//   - response to an atomic: 28
//   - acknowledgement: 16
//   - immediate data adds 4
//
// Both sides speak one version of the frames. A peer of another version is rejected. The caller's error and the called
// side's log name both versions.
//
// # Guarantees
//
//   - Completions mean what package verbs says: a write's bytes are placed, a send is in its receive. Unsignalled sends
//     and writes cost no acknowledgement. The acknowledgement of a send goes with the next frame to its sender, or in
//     the next poll.
//   - Sends and writes with immediate data leave only after the peer has announced receives for them. So a receiver
//     never has to stop reading, and acknowledgements and responses never wait for a peer that does not post.
//   - The target checks key, range and right of each request before the first byte. It looks the region up again for
//     each system call that accesses it. Deregister waits for such a call; after Deregister nothing touches the memory.
//   - A peer that breaks the protocol ends only its own connection, with an error that wraps [ErrProtocol]. The memory
//     kept because of a header is at most 512 bytes, for a hello or the text of a rejection. The pending responses of a
//     connection take at most 3 KiB. See Memory for the copy before an atomic.
//   - Both ends prove Options.Key within Options.HandshakeLimit, before either reads anything else. Only the preamble
//     that names a device at a [Port] precedes the proof. With Options.TLS all of it is encrypted.
//   - At most 128 connections that have not proved the key are served at once. One more replaces the oldest if that is
//     at least 250 ms old, and is closed otherwise. A peer whose connection was closed calls again, several times
//     within the limit.
//   - Options.Logger may fail or block. Failures of unproven peers are logged once per minute for each host and kind,
//     with their number.
//   - A peer whose process ends, or that closes, is detected at once. A peer that is silent for Options.Silence, or
//     does not read for as long, is given up.
//
// # Memory
//
// A connection takes 3.5 KiB with its queue pair. It adds 152 bytes for each request, 72 for each receive, 48 for each
// pending response to the peer's reads and atomics, 256 for each slot of a group of at most 8 in which one was posted
// inline, and 32 for each segment after the first. Each list begins with 8 entries, doubles when it is full, and never
// shrinks. MaxSends, MaxReceives and 64 responses are the limits. So a connection that has had at most 8 of each at once
// is idle with 8 KiB. TLS adds 16 KiB and the memory of package crypto/tls. Connections with encrypted output borrow
// 72 KiB each from a shared pool.
//
// The device has 9 KiB of look-ahead for the connection that it reads from. A connection has 10 KiB of the device for
// headers and small payloads, called a batch, while it has output that has not left. The device keeps as many free
// batches as its connections used at once in the last tenth of Options.Silence. It keeps at least one after the first use.
//
// A completion queue takes 32 bytes for each completion that it has held at once, at least 64 of them. While it grows
// it takes at most twice that. None of this grows with the job or with the size of messages. The system's socket
// buffers come on top; they follow its settings (tcp_rmem, tcp_wmem).
//
// A connection that ends while its peer does not read keeps a copy of its current batch, at most 1.5 MiB. It keeps the
// copy until that has left or Options.Silence is over, because the original memory belongs to its owners again. A
// connection that is stuck in the middle of responses to reads also makes this copy before an atomic may change their
// data.
package tcp
