// Package channel is the RDMA channel (paper D, J. Liu et al., High performance RDMA-based MPI
// implementation over InfiniBand, sections 3 and 4): small messages go by one RDMA write into a
// ring in the memory of the peer, whose processor looks there. It takes no receive, no completion
// and, on the way in, no call of a device.
//
// # The ring
//
// A ring is for one direction (4.1). Its owner, who receives, has registered N buffers of S bytes
// ([Config]); the sender has as many of its own, each tied to one of the ring's for life (3.2), so
// that an offset is all that changes from one write to the next, with the length. Messages take
// the buffers in circular order. One that is longer than a buffer takes the next ones, too, without
// a break. What does not fit before the end of the ring goes on behind it: there is as much memory
// beyond as the longest message may need, which is nobody's else, and the next message begins at
// the first buffer. So a message is one piece of memory wherever it begins, and nothing is left
// unused at the end.
//
// Numbers are little-endian. A message of n bytes is
//
//	head word   8 bytes   n in 32 bits, 24 bits of zero, flag
//	stamp       8 bytes   number 32 bits, credits 30, polled 1, uses 1
//	payload     n bytes, and what there is up to a multiple of 8
//	tail word   8 bytes   as the head word
//
// # When it is complete
//
// Where the device places the bytes of one write in rising order (verbs.Attributes.OrderedWrites,
// which no standard promises, 4.2) a message is one write. The receiver looks at the head word
// where the next message begins, which is zero before; the flag is its last byte, so it is all there
// when that is. From n follows where the tail word is. The message is complete when that equals the
// head word. There, what is left of an earlier message may look like a head word of that length:
// then the sender takes the other of two flags (4.2). It knows what is there:
//
//  1. its own memory is what it has written, and the receiver writes nothing into its ring but
//     zeroes over the first words of buffers: the first word of a message when it takes it, those of
//     the message's further buffers when it is freed;
//  2. so at the first word of a buffer of the ring there is zero, and elsewhere what the sender's
//     memory has at the same place;
//  3. but for what a gather list has brought from elsewhere, and what was stored in its memory and
//     not sent: of those it keeps the extents, one for each buffer. If the tail word lies in such an
//     extent, the message goes by two writes.
//
// Where the device promises no order within a write, each message goes by two in the same queue
// pair: all but the head word, and then the head word, whose flag says that there is no tail to wait
// for. A write of eight aligned bytes is placed as one, behind everything before it, on every device
// (verbs.OpRDMAWrite).
//
// # Credits
//
// A buffer is used again when the receiver has freed it (4.4). Messages are freed in any order
// and credited in theirs, by a count of all buffers that were ever freed, which goes with each message
// in the other direction, by ring or not. [Channel.NeedsTelling] tells when one has to be sent for
// nothing else: half of the ring is owed. Credit proves that the write has come, so the sender needs
// no completion; but a card that may read again what has come (verbs.Attributes.Resends) has to be
// heard of, too, before the memory is changed.
//
// # Falling back
//
// Without credit, or when the peer does not poll the ring, or for what is too long, a message is a
// letter: sent by the queue pair into a receive of the peer's. All messages of a direction are numbered
// (4.5), and the stamp of a letter are its first bytes. The receiver leaves the ring's next message
// there when a letter before it has not been taken. The other way round nothing has to wait: what was
// written before a letter was sent is there when it is received, so that the ring is emptied first.
//
// # The polling set
//
// To look at a ring costs about a load, and there may be thousands of peers, most of which send
// little. So a [Set] has the rings of the busiest, as many as a budget of time allows (3.3, 4.6). It
// counts messages, by ring or as letters, by periods of which each counts half as much as the next;
// a member has to be beaten by a factor of two to lose its place. The peer is told by a bit of every
// stamp whether its ring is polled. When that ends the peer answers by a letter, which says that it
// uses the ring no more: until then the ring is polled on.
//
// A write wakes nobody. A rank that is going to sleep takes all out of its set first
// ([Set.LeaveAll]). What is written before a peer has heard of that comes no later than the letter
// by which it says so, which wakes; and since that has a number, the ring is emptied before it. Nor
// does a ring tell that its peer has died: who waits for one watches it (verbs.Watcher).
//
// # Pipes
//
// Where two ranks map each other's memory (verbs.Mapper) a ring would be written by the sender's processor
// through a queue pair. There a channel has a pipe (package pipe) in its place: the sender stores a message
// in the receiver's memory. It begins with the stamp, so that it is in order with letters, and the set
// decides on it as on a ring. It returns room by itself: its stamp tells no credits. What finds no
// room goes as a letter.
//
// A pipe wakes nobody either. But who writes to one maps the peer, and rings it, which is a load if nobody
// sleeps there. So a rank that goes to sleep keeps its pipes.
//
// # Who does it
//
// A [Channel] is all of this for one connection, and a [Set] for a rank; both touch no device, so
// that they can be used on queue pairs that have other work, too. A [Poller] and its [End]s do it on
// queue pairs of their own:
//
//	poller, err := channel.NewPoller(device, channel.Options{})
//	end, err := poller.Connect(address, nil)
//	err = end.Send(payload)
//
//	for _, a := range into[:poller.Poll(into)] {
//		// a.Payload
//		a.End.Release(&a)
//	}
//
// Most requests are unsignalled (4.3). What of a request is the same for all buffers is filled in
// once. A [Poller] looks at the rings first, and at the completion queue if there is nothing in them;
// while messages come by pipes, at every thirty-second poll.
//
// # Invariants
//
//   - Messages are taken once, in order, complete. TestModel looks at all states that a small ring and
//     its messages can come to, with every byte placed by itself; TestMutants that it sees when a rule
//     is left out.
//   - What the peer writes is checked as it was loaded. Nothing is read beyond the ring; what no peer
//     writes is a [ProtocolError], which ends this channel and no other. A flag behind which no data
//     comes waits, until a letter does.
//   - The memory of a message is the peer's to write, if it does not keep to the protocol, until
//     it is freed: who cannot have that change under his eyes copies it. The memory of a pipe is given back when
//     the peer has said that it stores there no more, else with the device.
//   - A peer says itself on which device its pipe is: ranks that map each other's memory can store there
//     anyway.
//   - Words that a card writes while somebody looks are loaded atomically. Of what they publish the
//     race detector hears through package raceorder.
//   - A peer that sends little, or nothing, costs no ring: that is made when it first joins the set.
//     It is 10.25 KiB on either side for a direction with [DefaultConfig], so that a connection polled at
//     both ends takes 20.5 KiB of each rank; the paper has about 100 (4.1). A pipe is 72 KiB of the rank
//     that receives, and 4 KiB of its heap. The letters of an End take
//     Options.Letters places for each direction, 33 KiB in all if nothing else is said.
//   - Nothing is allocated for a message.
package channel
