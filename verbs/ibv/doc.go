// Package ibv is the verbs.Device over a real RDMA card, InfiniBand or RoCE, in hardware or in software; package world
// opens it by itself. A program imports it to open a device with other options, for world.WithNetwork. It uses
// libibverbs.
//
//	device, err := ibv.Open(ibv.Options{Device: "mlx5_0", Listen: "10.0.0.7:0", Key: key})
//	…
//	pair, err := device.Connect(peer.Address(), nil, config)
//
// It needs cgo and the build tag ibverbs, and an installed libibverbs with its headers (rdma-core 32 or later). Without
// them, and if there is no usable card, Open returns a *verbs.CapabilityError that says what is missing.
//
// # Progress
//
// The card makes progress by itself: peers read and write this rank's memory without a poll. Requests that are posted
// together are one foreign call per 64 of them, and so are completions that are polled. The call takes flat structures
// in which addresses are numbers, and nothing is allocated. A sleeping rank is woken by the card's event. A goroutine
// waits for it in Go's poller.
//
// # Costs
//
// Costs are measured when the device is opened, by about a thousand requests between two connected queue pairs of the
// device. A card in software takes a thousand times as long for a request as one in hardware. The choice between packed
// messages and single requests depends on the costs. The costs do not include the network. If the card cannot talk to
// itself, Costs are typical ones at the rate of the port, and the Logger reports that. Attributes.Spin is approximately
// the time to be woken by the card.
//
// # Connections
//
// Two queue pairs exchange their addresses over a TCP connection of their own. Both ends first prove Options.Key on it.
// The connection stays open as long as the queue pair. When its other end is gone, or is silent for Options.Silence,
// the peer counts as gone; the card would detect this only when it has something to send. The end of a process is
// detected at once.
//
// # Guarantees
//
//   - Completions mean what package verbs says, because InfiniBand guarantees it.
//   - After the first error of a queue pair the card flushes its outstanding requests. After those, this package
//     flushes the requests that are posted later.
//   - A completion queue does not overflow, whatever is posted: the card's part has room for all requests that may be
//     outstanding, and the sizes of the queue pairs bound these.
//   - A message waits for its receive as long as the peer lives. A peer that does not respond fails the queue pair
//     after seven times Options.Answer; cards may take up to four times as long.
//   - A peer with a queue pair to this rank may access any of its regions whose key it knows. Keys are the card's and
//     not secret: only processes with the job's key get a queue pair. The data on the fabric is not encrypted.
//   - The card fetches data that was stored before the request was posted. Loads after a polled completion, on every
//     processor, see what the card placed before it. The library's driver has the barriers for that, and no region has
//     relaxed ordering.
//   - A port that goes down fails only the requests that cannot be sent while it is down; it may come back in time. If
//     the card reports a failed queue pair, completion queue or card, everything that belongs to it fails at once.
//   - Programs may start others (os/exec): the child uses this process's memory unchanged until it executes another
//     program. Only C code that forks must call ibv_fork_init before.
//   - Memory is registered in place, pinned, and referenced until Deregister unless the region is Weak. The card
//     requires LocalWrite with RemoteWrite or RemoteAtomic. Such a region has LocalWrite here even if it was not
//     requested.
//   - The card's atomics are atomic with respect to each other. They are so with respect to CPU atomics only if
//     Attributes.CoherentAtomics is set.
//
// # Memory
//
// A connection takes a descriptor and a goroutine at each end. A queue pair takes 24 bytes for each of MaxSends and
// MaxReceives, rounded up to a power of two, and what the card needs.
//
// Fences need no polling, except for a card whose fences fail: the software card of Linux. There this package holds
// back the requests after a fenced one until a poll finds that the earlier reads are complete.
package ibv
