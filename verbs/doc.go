// Package verbs is the network card as this library sees it, in InfiniBand's
// terms: devices, memory regions with local and remote keys, reliable connected
// queue pairs, completion queues and work requests. Everything above it is
// written against [Device] and does not know which card it runs on.
//
// # The contract
//
// Nothing in a device blocks but [CompletionChannel.Sleep]. Work is posted in
// batches from the caller's slice and completions are polled into the caller's
// slice, so that a device behind a foreign call or a system call pays for it
// once a batch, and a device in virtual time stays in charge of time.
//
// A queue pair is reliable and ordered. Work requests of one queue pair take
// effect at the responder in the order in which they were posted: an [OpSend]
// is received after every earlier [OpRDMAWrite] has been placed. Reads and
// atomics are ordered among themselves; a write posted after a read may be
// placed before the read has returned, unless it carries [Fence].
//
// A completion with [StatusSuccess] means: for a send, the message is in a
// receive buffer of the peer, or in order behind a receive that is not yet
// posted; for a write, the bytes are placed at the target; for a read or an
// atomic, the result is in the local segment. One completion answers for every
// unsignalled request posted to that queue pair before it.
//
// After the first error a queue pair is in [StateError]: everything outstanding,
// and everything posted later, completes with [StatusFlushed]. Other queue pairs
// are not touched.
//
// The remote side of a request (key, range, access right) is checked for each
// request where the memory is, or by the rules of the memory's owner. A failed
// check is a [StatusRemoteAccess] completion at the requester, and the target's
// memory is untouched.
//
// The suite in verbs/verbstest states all of this as tests. Every device runs it.
package verbs

import _ "github.com/onesided/rma/internal/platform"
