// Package channel is the RDMA channel: short messages written into a peer's ring; it is for protocols over package
// verbs. It follows paper D (J. Liu et al., High performance RDMA-based MPI implementation over InfiniBand, sections 3
// and 4). One RDMA write carries a small message into a ring in the memory of the peer, whose processor polls it. The
// message needs no receive and no completion, and the receiver makes no call of a device.
//
// # The ring
//
// A ring is for one direction (4.1). Its owner, the receiver, has registered N buffers of S bytes ([Config]). The
// sender has as many buffers, each tied to one of the ring's (3.2). So only the offset and the length change from one
// write to the next. Messages take the buffers in circular order. A message that is longer than a buffer takes the next
// ones too. At the end of the ring it continues after it: there is unused memory for the longest message, and the next
// message begins at the first buffer. So every message is contiguous, and no buffer is left unused at the end.
//
// Numbers are little-endian. A message of n bytes is
//
//	head word   8 bytes   n in 32 bits, 24 bits of zero, flag
//	stamp       8 bytes   number 32 bits, credits 30, polled 1, uses 1
//	payload     n bytes, padded to a multiple of 8
//	tail word   8 bytes   as the head word
//
// # When a message is complete
//
// If the device places the bytes of one write in ascending order (verbs.Attributes.OrderedWrites, which no standard
// promises, 4.2), a message is one write. The receiver polls the head word where the next message begins, which is zero
// before. The flag is its last byte, so the whole head word is there when the flag is. n gives the place of the tail
// word. The message is complete when the tail word equals the head word. The rest of an earlier message may look like
// that tail word; then the sender uses the other of two flags (4.2). The sender knows what is there:
//
//  1. Its own memory is what it has written. The receiver only writes zeroes to its ring, over the first words of
//     buffers: the first word of a message when it takes the message, those of the message's further buffers when it is
//     freed.
//  2. So the first word of a buffer of the ring is zero, and the rest is what the sender's memory has at the same
//     place.
//  3. Exceptions are what a gather list has sent from elsewhere, and what was stored in the sender's memory and not
//     sent. The sender keeps the ranges of these, one for each buffer. If the tail word lies in such a range, the
//     message is two writes.
//
// If the device promises no order within a write, each message is two writes on the same queue pair: all but the head
// word, and then the head word, whose flag says that there is no tail to wait for. Every device places a write of eight
// aligned bytes at once, after everything before it (verbs.OpRDMAWrite).
//
// # Credits
//
// A buffer is reused after the receiver has freed it (4.4). Messages are freed in any order and credited in their
// order, by a count of all buffers ever freed. Each message in the other direction carries this count, by ring or not.
// [Channel.NeedsStamp] reports when a message must be sent only for the count: half of the ring is owed. A credit
// proves that the write has arrived, so the sender needs no completion. If the card may resend data that has arrived
// (verbs.Attributes.Resends), the sender must also have its completion before it changes the memory.
//
// # Falling back
//
// Without credit, if the peer does not poll the ring, or if it is too long, a message is an eager message: sent by the
// queue pair into a receive of the peer. All messages of a direction are numbered (4.5). The stamp is the beginning of
// an eager message. The receiver leaves the ring's next message there until earlier eager messages have been taken.
// Conversely nothing has to wait: what was written to the ring before an eager message was sent is there when that is
// received. So the receiver empties the ring before it takes the eager message.
//
// # The polling set
//
// Polling a ring costs approximately a load, and there may be thousands of peers, most of which send little. So a [Set]
// has the rings of the busiest peers, as many as a time budget allows (3.3, 4.6). It counts messages, by ring or eager,
// in periods, each of which weighs half as much as the next. A member loses its place only to a channel with twice its
// score. A bit of every stamp tells the peer whether its ring is polled. When that ends, the peer responds with an
// eager message that says that it does not use the ring any more. Until then the ring is still polled.
//
// A write wakes no rank. So a rank that is going to sleep first takes all rings out of its set ([Set.LeaveAll]). What a
// peer writes before it knows that arrives before its eager response, which wakes the rank. The ring is emptied before
// that, because messages are numbered. Nor does a ring show that its peer has died: a rank that waits for a peer
// watches it (verbs.Watcher).
//
// # Pipes
//
// If two ranks map each other's memory (verbs.Mapper), the sender's processor would write a ring through a queue pair.
// There a channel has a pipe instead: the sender stores messages in the receiver's memory. A message begins with the
// stamp, so that it is in order with eager messages, and the set treats the pipe as a ring. A pipe returns room by
// itself: its stamps carry no credits. A message without room is sent as an eager message.
//
// A pipe wakes no rank either. But its writer maps the peer and rings it, which is a load unless the peer sleeps. So a
// rank that goes to sleep keeps its pipes.
//
// # Use
//
// A [Channel] is the state of one connection, and a [Set] that of a rank. Both call no device, so they can be used on
// queue pairs that have other work too. A [Poller] and its [End]s use them on queue pairs of their own:
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
// Most requests are unsignalled (4.3). The parts of a request that are the same for all buffers are filled in once. A
// [Poller] polls the rings first, and the completion queue if the rings are empty. While messages arrive by pipes, it
// polls the completion queue at every thirty-second poll.
//
// # Invariants
//
//   - Messages are taken once, in order, complete. TestModel checks all states that a small ring and its messages can
//     reach, with every byte placed by itself. TestMutants checks that it detects a missing rule.
//   - Values that the peer writes are checked as they were loaded. Nothing is read beyond the ring. A value that no
//     peer writes is a [ProtocolError], which ends only this channel. A flag without data waits until an eager message
//     arrives.
//   - A faulty peer can change the memory of a message until it is freed. A receiver that cannot tolerate that copies
//     the message. The memory of a pipe is freed when the peer has announced that it stores there no more, otherwise
//     with the device.
//   - A peer itself names the device of its pipe: ranks that map each other's memory can store there in any case.
//   - Words that a card writes during a poll are loaded atomically. Package raceorder makes the race detector see what
//     they publish.
//   - A peer that sends little costs no ring: the ring is made when the peer first joins the set. A ring of
//     [DefaultConfig] takes 10.25 KiB on either side, so a connection polled at both ends takes 20.5 KiB of each rank;
//     the paper's takes about 100 KiB (4.1). A pipe takes 72 KiB of the receiving rank, and 4 KiB of its heap. The
//     eager buffers of an End take Options.EagerMessages places for each direction, 33 KiB in all by default.
//   - Nothing is allocated for a message.
package channel
