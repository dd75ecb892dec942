// Package regcache decides which buffers a card keeps registered; it is for layers over package verbs.
//
// A card that needs registered memory can access a buffer of the program in two ways. Copying through memory that is
// already registered takes a copy for each use. Registering the buffer takes many times as long as a small copy, but
// only once for a buffer that is used again. So package regcache counts uses ([Usage]). It registers a buffer when it
// has been used as often as pays, or a fraction of that ([Extra], [Speculation]). This follows Rashti and Afsahi,
// "Exploiting Application Buffer Reuse to Improve MPI Small Message Transfer Protocols over RDMA-enabled Networks"
// (Cluster Computing 14, 2011): paper B of docs/papers.md. The best fraction depends on the program, so it can be
// learned ([Adaptive]): for each class of sizes it is the fraction that would have been best for the buffers seen so
// far.
//
// A [Cache] keeps regions until there are too many, or until its caller reports that the memory was freed
// ([Cache.Invalidate], [Cache.Prune]). Then the uses of a buffer are counted anew. If more is in use than can be kept,
// an Adaptive policy keeps what it has. Otherwise it would register each buffer shortly before evicting it again.
//
// The package is pure: it calls no card, reads no clock, and has no goroutine.
package regcache
