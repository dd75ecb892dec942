// Package tcp is a verbs.Device whose peers are reached over TCP, on this machine or
// on others.
//
//	device, err := tcp.Open(tcp.Options{Listen: "10.0.0.7:0", Key: key})
//	…
//	pair, err := device.Connect(peer.Address(), nil, config)
//
// # How it moves
//
// A queue pair is one TCP connection. The device has no goroutine that serves it: it
// moves when somebody posts, or polls any of its completion queues, and its Channel
// sleeps on the sockets. Somebody has to poll at least once in Options.Silence, or the
// peers take this rank for dead. Goroutines exist only while a connection is made or
// the Logger is told something, and one that listens.
//
// A request is one frame or several, each a header of 48 bytes and at most 256 KiB of
// payload: see frame.go. Requests that are posted together leave in one system call for
// each 256 KiB, payloads from the program's memory. At the other end the payload of a
// write is read into the window, and that of a read response into the origin's segments,
// but for what arrived in the same 8 KiB as its header.
//
// Several connections for one queue pair bring nothing: a megabyte takes 123, 139 and
// 127 us over 1, 2 and 4 sockets of the loopback interface ("stream" of the benchmarks).
//
// # What holds
//
//   - A success means what package verbs says: a write's bytes are placed, a send is in
//     its receive. A send or write that is not signalled costs no acknowledgement.
//     That of a send goes with the next frame to its sender, or in the next poll.
//   - Sends and writes with immediate data leave only while the peer has told of
//     receives for them, so no receiver ever has to stop reading, and acknowledgements
//     and responses never wait for one who does not post.
//   - The target checks key, range and right for each request before the first byte,
//     and looks its region up again for each system call that writes there or reads
//     from there. Deregister waits for such a call; after it nothing touches the memory.
//   - A peer that breaks the protocol ends its own connection, with an error wrapping
//     [ErrProtocol], and no other. What is allocated because a header says so is a
//     hello or the text of a rejection, of at most 512 bytes.
//   - Both ends prove Options.Key before anything else that one sends is read (package
//     proof), but for which device is meant at a [Port], within Options.HandshakeLimit. With Options.TLS all of it is encrypted.
//     At most 128 connections that have not proved the key are heard at once. For one more the oldest is ended, if it
//     was heard for 250 ms; else the one that comes is. A peer whose connection was ended calls again, some times within the limit.
//   - Options.Logger may fail or block. What strangers do is told once a minute for each
//     host and kind of failure, and counted.
//   - A peer whose process ends, or that closes, is noticed at once. One that is silent
//     for Options.Silence, or does not read for as long, is given up.
//
// # What it takes
//
// A connection takes 23 KiB: 8 KiB of look-ahead, 8 KiB for headers and small payloads
// that leave, the rest lists of fixed length. Its queue pair adds 152 bytes for each of
// MaxSends and 72 for each of MaxReceives (28 KiB with the 128 that are the default),
// 256 for each slot that was ever posted inline, 32 for each segment after the first.
// TLS adds 16 KiB and what package crypto/tls takes; what is encrypted lies in 72 KiB
// which the connections share, those that have something to send. A completion queue takes
// 32 bytes for each of the completions that it has held at once, at least 64, and up to
// twice as many for its growing. None of it grows with the job or with the size of
// messages. The system's socket buffers come on top; they follow its settings (tcp_rmem,
// tcp_wmem).
//
// A connection that ends while its peer does not read keeps a copy of the batch that is on
// its way, of up to 1.5 MiB, until that has left or Options.Silence is over: the memory
// which it was made of is its owner's again. So does one, as long as it is stuck in the
// middle of answers to reads, that takes an atomic which may change what they promised.
package tcp
