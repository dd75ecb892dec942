// Package hashtable is a hash table that the ranks of a job share: string keys, whose
// values are bytes or counters, spread over windows of all ranks. Every rank reads and
// writes every entry by one-sided operations; no rank serves another.
//
//	table, err := hashtable.New(ctx, w, hashtable.Config{Slots: 1 << 16, RecordBytes: 4 << 20})
//	...
//	count, err := table.Add(ctx, "gopher", 1)
//	err = table.Put(ctx, "color", []byte("blue"))
//	value, found, err := table.Get(ctx, "color")
//	err = table.Close()
//
// New and Close are collective. Everything else is called by any goroutine of any rank
// at any time, without the others. Every operation on a key is linearizable: it takes
// effect at one moment between its call and its return. A [Batch] runs many at once: in
// rounds, each of which issues the next step of all its operations and then completes
// them together, so that their latencies overlap and their messages are shared. Of a large batch
// two parts at a time go so, the round of one while the results of the other are looked at. Those of one kind on
// one key that a batch has several of cross the network once, of Puts those that need the same room.
//
// # Memory
//
// The hash of a key gives the rank that owns it, a home bucket there, and a
// fingerprint. Each rank exposes one window of 64-bit words:
//
//	line 0      word 0: how many words of the record space are allocated; then sizes, for clients
//	lines 1-16  announcements: which Runs of this rank are under way
//	line 17     word 0: how many words wait in this rank's bags
//	then        the heads of lists of free pieces, one for each size
//	a line      two words that say where the index is, and the next one
//	then        free blocks for indexes, one of each size
//	the first index, and a block for another
//	records     the entries, each some whole words, and later indexes
//
// An index is buckets of 8 slots each, one cache line; see Growth for how one follows another.
//
// A slot is empty (0) or one word that says all there is to know of an entry:
//
//	bit  63     taken: set as soon as the slot is not empty
//	bit  62     live: clear when the entry has been deleted
//	bit  61     counter: the value is a counter, not bytes
//	bit  60     frozen: the key is about to have its slot in another index, or has it
//	bits 46-59  the key's fingerprint
//	bits 32-45  the record's length in words
//	bits 0-31   the record's place in the record space, in words
//
// A record is a word of lengths, the key, and the value; that of a counter has the
// counter, an aligned word, in front.
//
// The table's windows are in one epoch of LockAll from New to Close. It excludes nobody, as
// window.NoCheck asserts, so a rank is connected only with those whose keys it uses. Slots
// and counters change by single-element atomics only. So no operation ever waits for
// another: a reader that is descheduled, or whose process dies, keeps nobody from anything,
// and neither does a writer.
//
// # Invariants
//
// 1. A slot that has been given to a key belongs to it for the life of the index. The
// only way from empty to taken is a compare-and-swap by an inserter of that key;
// deletion clears the live bit and nothing else; a new value, also after a deletion,
// keeps the fingerprint and refers to a record of the same key. A slot that is frozen keeps its value until
// it says that its key has moved.
//
// 2. A record is immutable from the moment a slot refers to it, but for its counter, until
// nobody who knows it is under way: see Space. It is put into a piece of the record space that
// is its writer's alone, and flushed, before the compare-and-swap that publishes
// it: whoever reads the slot and after that the record finds it complete.
//
// 3. The value of a slot does not recur while somebody who has read it is under way. Each published
// value names a record that no slot names, and that none of those knows, and deletion only takes the live bit
// from the latest. So a compare-and-swap that succeeds has met the very value that was read before (no ABA).
//
// 4. A key has at most one slot. Its slots are tried in a fixed order: the home
// bucket from its first slot to its last, then the next bucket, and so on. An inserter
// takes the first empty slot of that order, having seen, by atomic reads, that
// every slot before it belongs to another key; by 1 that stays true. Suppose that two
// inserters of one key took slots a and b, a before b. The one at b saw a taken by
// another key. But a was taken by this key, and a slot never changes its key.
// Whoever loses the compare-and-swap looks at the slot again before it goes on.
//
// # Reading
//
// A bucket is read by one GetAccumulate with NoOp, which reads each slot atomically but
// not the bucket as a whole. That is enough: a key that had its slot when the read began
// has it, by 1, in every state that the slot is read in, so if the key is not found it
// was not there when the call began.
//
// An operation on a counter whose key is deleted at the same time may update the old
// record after the deletion. It had read the slot before, so it overlaps the deletion and
// counts as having come first; nobody who comes after the deletion finds that record.
//
// A Put over an entry of bytes tries its compare-and-swap once. If it fails, another
// operation has replaced or deleted the value that the Put had read, after it was read. The
// Put counts as having come just before that one, which it leaves nothing to see of, and whose
// result it does not change: the key was there. So however many ranks put under one key, each
// of them is through in three rounds.
//
// # Mapped owners
//
// Where the owner's memory is mapped in this process the steps are the same, done by the
// processor: loads, adds and compare-and-swaps of sync/atomic are in one order with the
// window's (window.Shared), and records are compared where they are and written in place.
// Nothing is issued, nothing waits, and a batch does such operations a few at a time, while it waits for other owners' if it
// has such.
//
// # Looking at it
//
// [Table.Local] ranges over the entries of this rank, [Table.All] over those of all, some buckets at a time, which
// it copies within an announcement. Both see each key that is there all the time, once. [Table.Stats] and
// [Table.StatsOf] count entries and space.
//
// # Space
//
// Record space is given in pieces of few sizes (a quarter apart), so that they fit again. A new one is allocated
// by an atomic add to the owner's word 0. Who replaces a record, or sets a slot whose key was deleted, retires the
// old one, which nobody can come to know any more; but others may, who are under way. Its piece is used again when all of those have
// ended:
//
//   - A Run is announced, in a word of its own rank's window that is odd meanwhile, before it reads anything,
//     and until all that it has issued is complete.
//   - Retired pieces go into a bag. When one is full enough it is closed, and all ranks' announcements are
//     read, after that: who is not announced then, or is so by another number later, does not know what is in the
//     bag. When none is left who may, the pieces are free. Ranks that have failed are nobody.
//   - Free pieces are for this rank to use, as many as it needs, and the others go to a list at their
//     owner, from which any rank takes some that runs short.
//
// A Run that is stuck holds up the use of space, and of slots for other keys where record space is short. The bags of a rank that fails, and what it had
// for itself, are lost, and so is the piece of an operation of which nobody knows whether it was carried out. A deleted key
// keeps its slot and its piece until it comes back or the index is replaced. An operation that finds no space waits for what is in bags: a
// second, or up to ten if some becomes free; then, as when slots run out, it fails with a [FullError] that has the sizes,
// before it has changed anything. Pieces are neither split nor joined: a table whose values' lengths vary needs
// room for each size. Two or three times what the entries take at once is ample for values of one length.
//
// # Growth
//
// When new keys come to lie far from their homes, or find no slot, the index is replaced: by one of twice the slots, or, if
// fewer than three eighths are of keys that are there, by one of as many, which deleted keys do not come to. So slots
// are for other keys again, in turn. Its block comes from the record space, and an index's block is free again, or record space, when
// all have ended who may know it, as pieces are. The word that says where the next index is says, as long as there is none, where the
// current one is; it is set by a compare-and-swap, and then keys move, slot by slot, while all go on:
//
//   - an empty slot is closed, and that of a deleted key says that it was left: moved;
//   - that of a key that is there is frozen; the next index is given its value, at the first empty slot
//     that the key may have there, unless it has one; then the slot is moved.
//
// Moves are compare-and-swaps that anybody may begin, repeat and end. The rank that replaces the index carries out all; others,
// whose operations insert, some; and if it fails they carry out all. When every slot is closed or moved the next index becomes
// the current one, by a compare-and-swap. Operations learn all that from the slots:
//
//   - A key has its slot in the current index until that is moved. It is looked for there first, and nowhere else if neither
//     closed nor moved slots are met.
//   - Its slot frozen, the value there is the key's.
//   - Who changes a key whose slot is frozen gives it to the next index first, and has the slot moved: so the next index has
//     no other value before, and no record is set free to which a slot refers.
//   - Who inserts a key closes, in the current index, the slot that it would have, or has the deleted key's moved, so that it cannot
//     come there, and goes on in the next one.
//   - Who meets a frozen, closed or moved slot in what it takes for the last index begins again, with the words
//     that say where indexes are.
//
// These words are read once or twice for each owner in a Run, along with the first bucket: as the Run was announced before, an index that is
// current then is not used again until it ends. In an index of twice the slots half of each bucket is for keys that
// move there, and in one of as many all of it, until all have moved: so these always find a slot.
//
// A table that has no room for a larger index refuses new keys when it is full, with a [FullError] that
// says so. An index takes 8 bytes a slot, twice while and after it replaces another.
//
// # Serving
//
// The table of a job of one rank can be served to processes that come and go ([Table.Serve], [Attach]): clients
// do all that a rank does, by one-sided operations on the window of the process that serves. In place of an announcement a
// client shares a lock during its Runs, which adds a message there and back to each; space is free when that
// lock was had alone, too.
//
// The process that serves does so until ctx ends; Serve then returns nil:
//
//	w, err := world.Init(ctx) // a job of one rank, without a launcher
//	listener, err := world.Listen(ctx, "host:7000") // with a key: RMA_SERVE_KEY_FILE
//	table, err := hashtable.New(ctx, w, hashtable.Config{Slots: 1 << 16, RecordBytes: 4 << 20, Clients: 64})
//	err = table.Serve(ctx, listener, "words")
//	...
//	err = errors.Join(listener.Close(), table.Close(), w.Close())
//
// A window.Server serves it within limits, and shows and evicts sessions: see [Table.Windows].
//
// A client attaches, and ends by closing its table and its session:
//
//	session, err := world.Dial(ctx, "host:7000")
//	table, err := hashtable.Attach(ctx, session, "words")
//	...
//	err = table.Close()
//	err = session.Close()
//
// # Measuring
//
// How operations of a batch are arranged that cross a network is the window's to decide,
// and the options of New are the window's: with window.Without(scheduler.Pack) they travel
// each by itself. What such a way is worth to inserts and look-ups in batches of 1000, over
// TCP on loopback,
//
//	go run ./bench schemes hashtable_insert_rate hashtable_lookup_rate
//
// shows for all of them in one run, and
//
//	go run ./bench -device tcp -set pack=off hashtable_insert_rate hashtable_lookup_rate
//
// for one by itself. The benchmarks of this package have both ranks in one process.
package hashtable
