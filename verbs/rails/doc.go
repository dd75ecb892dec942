// Package rails is a verbs.Device made of several, its rails, of which a long write or read takes
// all at once, so that it has the bandwidth of all of them together.
//
//	device, err := rails.New(first, second)
//	…
//	pair, err := device.Connect(peer.Address(), nil, config)
//
// The peer has a device of as many rails. Rail 0 is the main one: a queue pair has one queue pair
// on each rail, and all that is not long goes over that of rail 0, which also has all receives.
// Keys, addresses of memory and latencies are those of rail 0.
//
// # Striping
//
// A long request is cut into as many parts as there are rails, one for each, as long as the
// rail's bandwidth is to that of all; where one of them is unknown, equally long. The cuts are at
// addresses of the target that are multiples of 64, a line of the cache, so that no two cards
// write to one. A request is long if the time that striping saves exceeds what it takes: to post
// the other parts, and a way there and back, by which it may hold up what is posted behind it. Of
// several that are outstanding it is enough that they are so together, and each worth the posting.
//
// What it brings is bandwidth of links: a write of 1 MiB between simulated cards of 2024 takes 12.2 us
// over two in place of 22.9 (BenchmarkLongWrite). Between processes of one machine, whose processors
// move the bytes, TCP over two addresses takes longer than over one.
//
// These hold:
//
//  1. A part of a request over another rail than 0 asks for a completion of its own. A request
//     of the user's is complete when all its parts are; completions come in the order of
//     requests.
//  2. What goes over rail 0 alone is held back, in order, until the parts of everything
//     posted before it on other rails have completed: a message, an atomic or a short write
//     takes effect after all earlier writes. It is posted by a poll of any queue, so that a rank
//     has to poll, or sleep and poll, until it has completed. Inline data, and the lists that name
//     segments, are copied meanwhile.
//  3. Long requests do not wait for each other, nor for what is on its way over rail 0. One
//     that has bytes in common with an earlier request that is outstanding, and of which one
//     writes, goes over rail 0 alone, unless both are of just the same bytes: then each byte
//     goes over the same rail twice, which keeps the order. So does one with verbs.Fence while a
//     read or an atomic is outstanding.
//  4. So reads see what was written before them, the last of several writes to a place stays,
//     and whoever receives a message, or sees a short write, sees all writes before it. What
//     there is no order between is which of several long requests, or of a long one and a
//     short one before it, reaches different bytes first; and bytes of a long request are placed
//     in no order (verbs.Attributes.OrderedWrites is false).
//  5. A queue pair has failed when that of any rail has. It is then severed on all of them, and
//     QueuePair.Err says which rail it was. Of a long write that fails, and of one behind a
//     request that fails, some parts may be placed.
//
// # Keys
//
// A region has a key on each rail, and the user's peer knows the one of rail 0. The others are
// asked for over rail 1, by messages of the package's own (see message.go), when the region is to
// be reached by a long request for the first time; until the answer is there all goes over rail
// 0. Of these messages nothing is trusted: they are checked, their number is bounded, and a peer
// that breaks the rules ends its own queue pair with an error wrapping [ErrProtocol].
//
//  6. An owner answers only who names a key and an address that belong to one region with a
//     remote right. Whoever knows them could reach the region over rail 0.
//  7. A requester stripes only what lies within the region that the answer has described.
//  8. An owner that deregisters a region tells those who have asked, and until they have
//     confirmed it gives out no region with the same key on rail 0: what is registered
//     meanwhile and gets it is registered again. So no key of a new region is mixed up with an
//     old one, whichever rail is faster.
//
// # Connections
//
// The connections of a queue pair belong together by a random token of 16 bytes in their hellos.
// A request to connect is told to the user when it has come over all rails. Those that wait for
// others are bounded in number and in time, and rejected then.
//
// # Sleeping
//
// A rank sleeps on the channel of rail 0. Those of other rails are listened to by a goroutine
// each while somebody sleeps, unless they are the same, as those of sim.Device.OpenRail are. In
// virtual time they have to be.
//
// # What it takes
//
// Beside one on each rail, a queue pair takes 6 KiB, most of it for messages about keys, 32 bytes
// for each of MaxSends, and for as many requests as were ever held back at once 96 each and their
// lists of segments. Each region of the peer's that is known takes 140 bytes, of at most 4096. A short
// request takes a copy of its work request more than on rail 0 alone, a poll a look at each rail that
// the processor moves (verbs.Server) or where something is outstanding.
package rails
