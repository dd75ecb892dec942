// Package rails wraps verbs devices: several devices, its rails, become one verbs.Device whose long writes and reads
// use all rails at once; it is for programs and layers over package verbs that have several links. The bandwidth is
// that of all rails together.
//
//	device, err := rails.New(first, second)
//	…
//	pair, err := device.Connect(peer.Address(), nil, config)
//
// The peer has a device with the same number of rails. Rail 0 is the main one: a queue pair has one queue pair on each
// rail, and everything that is not long goes over rail 0, which also has all receives. Keys, addresses of memory and
// latencies are those of rail 0.
//
// # Striping
//
// A long request is cut into one part per rail, in proportion to the rails' bandwidths. If one of these is unknown, the
// parts are equal. The cuts are at addresses of the target that are multiples of 64, a cache line, so that no two cards
// write to one line. A request is long if the time that striping saves exceeds its costs: posting the other parts, and
// a round trip, by which it may delay later requests. Outstanding requests count together, if each is worth the
// posting.
//
// Striping uses the bandwidth of several links. Between processes of one machine, whose processors move the bytes, TCP
// over two addresses takes longer than over one.
//
// These invariants hold:
//
//  1. A part of a request over another rail than 0 is signalled. A request of the user is complete when all its parts
//     are; completions come in the order of requests.
//  2. A request over rail 0 alone is deferred, in order, until the parts of everything posted before it on other rails
//     have completed. So a message, an atomic or a short write takes effect after all earlier writes. A poll of any
//     queue posts it, so a rank has to poll, or sleep and poll, until it has completed. Inline data, and the lists of
//     segments, are copied meanwhile.
//  3. Long requests do not wait for each other, nor for requests on rail 0. A long request goes over rail 0 alone if it
//     overlaps an earlier outstanding request and one of the two writes. If both have exactly the same bytes it is
//     striped: then each byte uses the same rail twice, which keeps the order. A request with verbs.Fence goes over
//     rail 0 alone while a read or an atomic is outstanding.
//  4. So reads see earlier writes, and the last of several writes to a place wins. A peer that receives a message or
//     sees a short write sees all writes before it. There is no order in which several long requests, or a long one and
//     a short one before it, reach different bytes. The bytes of a long request are placed in no order
//     (verbs.Attributes.OrderedWrites is false).
//  5. A queue pair fails when its queue pair on any rail fails. It is then severed on all rails, and QueuePair.Err
//     names the rail. Parts of a failed long write may be placed, and so may parts of a long write after a failed
//     request.
//
// # Keys
//
// A region has a key on each rail, and the user's peer knows the key of rail 0. When a long request needs the region
// for the first time, the package requests the other keys over rail 1, by messages of its own (see message.go). Until
// the response arrives everything goes over rail 0. These messages are not trusted: they are checked, and their number
// is bounded. A peer that breaks the protocol ends its own queue pair with an error that wraps [ErrProtocol].
//
//  6. An owner responds only to a peer that names a key and an address of one region with a remote right. Such a peer
//     could access the region over rail 0.
//  7. A requester stripes only requests within the region that the response has described.
//  8. An owner that deregisters a region notifies the peers that have requested its keys. Until they have confirmed, it
//     gives out no region with the same key on rail 0: a registration that gets that key is repeated. So a key of a new
//     region is never mixed up with an old one, whichever rail is faster.
//
// # Connections
//
// A random token of 16 bytes in their hellos connects the connections of a queue pair. The user gets a connection
// request when it has arrived over all rails. Requests that wait for other rails are bounded in number and in time, and
// then rejected.
//
// # Sleeping
//
// A rank sleeps on the channel of rail 0. While it sleeps, a goroutine per other channel sleeps on that and wakes the
// rank. Rails may share a channel, as those of sim.Device.OpenRail do. In virtual time they must.
//
// # Memory
//
// Beside a queue pair on each rail, a queue pair takes 6 KiB, most of it for messages about keys. It takes 32 bytes for
// each of MaxSends. For the largest number of requests deferred at once it takes 96 bytes each and their lists of
// segments. Each known region of the peer takes 140 bytes; at most 4096 are known. A short request costs one copy of
// its work request more than on rail 0 alone. A poll checks each rail that the processor moves (verbs.Server) or that
// has outstanding requests.
package rails
