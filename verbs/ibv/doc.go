// Package ibv is a verbs.Device over a real RDMA card: InfiniBand or RoCE, in hardware or in
// software, through libibverbs.
//
//	device, err := ibv.Open(ibv.Options{Device: "mlx5_0", Listen: "10.0.0.7:0", Key: key})
//	…
//	pair, err := device.Connect(peer.Address(), nil, config)
//
// It is built with cgo and the build tag ibverbs, where libibverbs and its headers (rdma-core 32
// or later) are installed. Without them, and where there is no card that can be used, Open returns a
// *verbs.CapabilityError that says what is missing.
//
// # How it moves
//
// The card does. Nothing here has to be polled for peers to read and write this rank's
// memory. Requests that are posted together are one foreign call for each 64 of them, and so
// are completions that are polled: the call takes flat structures in which addresses are
// numbers, and nothing is allocated. A rank that sleeps is woken by the card's event, for
// which a goroutine waits as others do for sockets.
//
// # What it costs
//
// Costs are measured when the device is opened, by two queue pairs of its own that are connected
// to each other: a card in software takes a thousand times as long for a request as one in
// hardware, and what is packed into messages, or goes by itself, depends on that. It takes about a
// thousand requests of the card. What the network adds is not known. Where the card does not talk
// to itself, they are those of cards of today at the rate of the port, and the Logger is told.
// Attributes.Spin is about how long it takes to be woken by the card.
//
// # How queue pairs meet
//
// Over a TCP connection for each, the line, on which both ends first prove Options.Key
// (package proof). The line stays for as long as the queue pair does: when its other end is
// gone, or is silent for Options.Silence, so is the peer, which the card would notice only
// when it has something to send. A process that ends is noticed at once.
//
// # What holds
//
//   - A success means what package verbs says, because InfiniBand does.
//   - After the first error of a queue pair everything that the card has of it is flushed by
//     the card, and what is posted later by this package, behind that. See queue_pair.go.
//   - A completion queue does not overflow, whatever is posted: the card's part of it has room
//     for all that may be outstanding, and what is outstanding is bounded by the sizes of the
//     queue pairs.
//   - A message waits for its receive for as long as the peer lives. A peer that does not
//     answer fails the queue pair after seven times Options.Answer, which cards may stretch to
//     four times as long.
//   - The peers with which this rank has a queue pair may name any of its regions whose key
//     they know. Keys are the card's, not secrets: only those who hold the job's key get a
//     queue pair. What crosses the fabric is not encrypted.
//   - What was stored before a request is posted is what the card fetches, and what it has placed
//     before a completion is what is loaded after that was polled, on every processor: the
//     library's driver has the barriers for it, and no region is of relaxed ordering.
//   - A port that goes down fails what cannot be sent while it is down, and nothing else: it may
//     come back in time. A queue pair, a completion queue or a card that the card reports as
//     failed fails at once what belongs to it.
//   - Programs may start others (os/exec): the child uses this process's memory as it is until it is
//     another program. Only C code that forks has to call ibv_fork_init before.
//   - Memory is registered where it is, pinned, and referred to until Deregister unless the region is
//     Weak. With RemoteWrite or RemoteAtomic the card asks for LocalWrite, which such a region has here
//     also where it was not asked for.
//   - The card's atomics are atomic against each other. Only where Attributes say that they
//     are coherent are they so against those of CPUs.
//
// # What it takes
//
// A line has a descriptor and a goroutine at each end. A queue pair has 24 bytes here for each
// of MaxSends and MaxReceives, rounded up to a power of two, and what the card needs.
//
// Reads and atomics need no attention of their own on the way, but for a card whose fences
// fail, the software one of Linux: behind a fenced request this package holds back what
// follows, until somebody polls and finds that the earlier reads are over.
package ibv
