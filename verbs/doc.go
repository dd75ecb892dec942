// Package verbs describes a network card in InfiniBand's terms; it is for those who write a device, or a protocol over
// any device. The terms are devices, memory regions with local and remote keys, reliable connected queue pairs,
// completion queues and work requests. Protocols use [Device] and do not know which card they run on.
//
// # The contract
//
// Only [CompletionChannel.Sleep] blocks. Work is posted in batches from the caller's slice, and completions are polled
// into the caller's slice. So a device behind a foreign call or a system call pays for it once per batch. A device in
// virtual time controls the time.
//
// A queue pair is reliable and ordered. Sends and writes of one queue pair take effect at the responder in the order in
// which they were posted: an [OpSend] is received after every earlier [OpRDMAWrite] has been placed. Reads and atomics
// are ordered among themselves, and after earlier writes. A write posted after a read may be placed before the read
// takes its data, so the read may return the new bytes, unless the write carries [Fence].
//
// A completion with [StatusSuccess] means:
//
//   - for a send, that the message is in a receive buffer of the peer, or waits in order for a receive to be posted;
//   - for a write, that the bytes are placed at the target;
//   - for a read or an atomic, that the result is in the local segment.
//
// One completion also completes every unsignalled request posted to that queue pair before it.
//
// After its first error a queue pair is in [StateError]: all outstanding requests, and all that are posted later,
// complete with [StatusFlushed]. Other queue pairs are not affected.
//
// Key, range and rights of each request are checked by the owner of the memory, or by the requester according to what
// the owner has published. If a check fails, the requester gets a [StatusRemoteAccess] completion and the target's
// memory is unchanged.
//
// Package verbs/verbstest has all of this as tests. Every device runs them.
package verbs

import _ "github.com/onesided/rma/internal/platform"
