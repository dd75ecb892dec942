// Package hashtable is a distributed hash table over the windows of all ranks. Keys are strings; values are bytes or
// counters. Every rank reads and writes every entry by one-sided operations; the owner's program takes no part.
//
//	table, err := hashtable.New(ctx, w, hashtable.Config{Slots: 1 << 16, RecordBytes: 4 << 20})
//	...
//	count, err := table.Add(ctx, "gopher", 1)
//	err = table.Put(ctx, "color", []byte("blue"))
//	value, found, err := table.Get(ctx, "color")
//	err = table.Close()
//
// New and Close are collective. Every other method may be called by any goroutine of any rank at any time. Operations
// on a key are linearizable: each takes effect at one moment between its call and its return.
//
// A [Batch] runs many operations at once, in rounds. A round issues the next step of every operation and then
// completes all steps together, so that latencies overlap and messages are shared. A large batch has two parts in
// progress: one round is on its way while the results of the other are processed. Operations of one kind on one key
// in a batch cross the network once. For Puts this holds if their records take the same space.
//
// # Memory
//
// The hash of a key selects the rank that owns it, a home bucket there, and a fingerprint. Each rank exposes one
// window of 64-bit words. A line is 8 words:
//
//	line 0      word 0: number of allocated words of the record space; then sizes, for clients
//	lines 1-16  announcements: which Runs of this rank are in progress
//	line 17     word 0: number of words in this rank's retire lists
//	then        the heads of the lists of free pieces, one for each size
//	a line      two words that locate the current index and the next one
//	then        free blocks for indexes, one of each size
//	            the first index, and a block for another
//	records     the entries, each a number of whole words, and later indexes
//
// An index is an array of buckets. A bucket is one cache line of 8 slots. Section Growth describes how one index
// follows another.
//
// A slot is empty (0) or a word that describes an entry:
//
//	bit  63     taken: set in every slot that is not empty
//	bit  62     live: clear when the entry has been deleted
//	bit  61     counter: the value is a counter, not bytes
//	bit  60     frozen: the key has a slot in another index, or is about to have one
//	bits 46-59  the key's fingerprint
//	bits 32-45  the record's length in words
//	bits 0-31   the record's offset in the record space, in words
//
// A record is a word of lengths, the key, and the value. The record of a counter begins with the counter, an aligned
// word.
//
// The table's windows are in one LockAll epoch from New to Close. The epoch excludes no other rank, as window.NoCheck
// asserts, so a rank connects only to the owners of the keys that it uses. Slots and counters change by
// single-element atomic operations only. No operation ever waits for another: a rank that is descheduled or dies
// blocks no other rank.
//
// # Invariants
//
// 1. A slot that has been given to a key belongs to it for the life of the index. An empty slot becomes taken only by
// a compare-and-swap of an operation that inserts that key. Deletion clears the live bit and nothing else. A new
// value, also after a deletion, keeps the fingerprint and refers to a record of the same key. A frozen slot keeps its
// value until it becomes moved.
//
// 2. A record is immutable while a slot refers to it and while an operation that has read the slot is in progress (see
// Space). The counter in a record is the exception. The writer puts a record into a piece of the record space that only
// it uses, and flushes it. Then a compare-and-swap publishes the record. So an operation that reads the slot and then
// the record finds the record complete.
//
// 3. The value of a slot does not recur while an operation that has read it is in progress. Each published value
// names a record to which no slot refers and which no such operation has seen. Deletion only clears the live bit of
// the latest value. So a compare-and-swap that succeeds has met the very value that was read before: there is no ABA
// problem.
//
// 4. A key has at most one slot. Slots are tried in a fixed order: the home bucket from its first slot to its last,
// then the next bucket, and so on. An inserter takes the first empty slot of that order, after atomic reads have
// shown that every slot before it belongs to another key. By 1 that stays true. Suppose that two inserters of one key
// took slots a and b, a before b. The one at b saw that a was taken by another key. But a was taken by this key, and
// a slot never changes its key. An operation whose compare-and-swap fails looks at the slot again before it
// continues.
//
// # Reading
//
// A bucket is read by one GetAccumulate with NoOp, which reads each slot atomically but not the bucket as a whole.
// That is enough. A key that had its slot when the read began has it, by 1, in every state in which the slot may be
// read. If the key is not found, it was absent when the call began.
//
// An operation on a counter whose key is deleted at the same time may update the old record after the deletion. The
// operation read the slot before, so it overlaps the deletion and takes effect before it. No operation that begins
// after the deletion finds that record.
//
// A Put over an entry of bytes tries its compare-and-swap once. If that fails, another operation has replaced or
// deleted the value after the Put read it. The Put then takes effect just before that operation. It leaves no trace
// and does not change the other's result: the key was there. So a Put ends after three rounds, however many ranks put
// to one key.
//
// # Mapped owners
//
// If the owner's memory is mapped in this process, the steps are the same, and the processor carries them out. Loads,
// adds and compare-and-swaps of sync/atomic are in one order with those of the window (window.Window.Mapped). Records
// are compared where they are and written in place. Nothing is issued and nothing waits. A batch does such operations a
// few at a time while it waits for other owners, if there are any.
//
// # Inspection
//
// [Table.Local] ranges over the entries of this rank, [Table.All] over those of all ranks. Both read some buckets at
// a time, and copy their entries within an announcement. Both yield each key once that is there all the time.
// [Table.Stats] and [Table.StatsOf] count entries and space.
//
// # Space
//
// Record space is allocated in pieces of few sizes, a quarter apart, so that later records fit freed pieces. A new
// piece is allocated by an atomic add to word 0 of its owner. An operation that replaces a record, or gives a deleted
// key a value again, retires the old record. No new operation can find it, but operations in progress may have seen
// it. Its piece is used again when all of those have ended:
//
//   - A Run, which is a call of [Batch.Run], is announced by a word of its own rank's window that is odd meanwhile.
//     The announcement lasts from before its first read until all that it has issued is complete.
//   - Retired pieces go into a retire list. A full one is closed, and then the announcements of all ranks are read. A
//     Run that is not announced then, or whose number differs later, has not seen the pieces of the list. When no Run
//     is left that may have seen them, the pieces are free. Failed ranks do not count.
//   - A rank keeps as many free pieces as it needs. The others go to a list at their owner, from which any rank takes
//     pieces when it runs short.
//
// A Run that is stuck delays the reuse of space, and the reuse of slots for other keys if record space is short. When a
// rank fails, its retire lists and its free pieces are lost, and so is the piece of an operation whose outcome is
// unknown. A deleted key keeps its slot and its piece until it comes back or the index is replaced.
//
// An operation that finds no space waits one second for pieces in retire lists, and as long as ten seconds if some
// become free. Then it fails with a [FullError] that has the sizes, before it has changed anything. So does an
// operation that finds no slot. Pieces are neither split nor joined: a table whose values vary in length needs room for
// each size. For values of one length, two or three times the size of all entries is ample.
//
// # Growth
//
// The index is replaced when new keys come to lie far from their homes, or find no slot. The next index has twice the
// slots. If at most three eighths of the slots are of live keys, it has the same number of slots: deleted keys do not
// move, so their slots become free for other keys.
//
// The block of an index comes from the record space. It becomes free, as a block or as record space, when all
// operations that may know it have ended, as pieces do. The word that locates the next index equals the word of the
// current one while there is no next index. A compare-and-swap sets it. Then keys move, slot by slot, while
// operations continue:
//
//   - An empty slot becomes closed. The slot of a deleted key becomes moved.
//   - The slot of a live key becomes frozen. Then its value is set in the next index, at the first empty slot that
//     the key may have there, unless the key has one. Then the slot becomes moved.
//
// Moves are compare-and-swaps that any rank may begin, repeat and end. The rank that replaces the index moves all
// keys. Other ranks whose operations insert keys move some, and move all if that rank fails. When every slot is
// closed or moved, a compare-and-swap makes the next index the current one. Operations learn about this from the
// slots:
//
//   - A key has its slot in the current index until that slot is moved. Operations look there first. They look
//     nowhere else if they meet no closed and no moved slot.
//   - The value of a frozen slot is the key's value.
//   - An operation that changes a key whose slot is frozen first copies the value to the next index and makes the
//     slot moved. So the next index has no other value before that, and no record is freed to which a slot refers.
//   - An operation that inserts a key first closes the slot that the key would have in the current index. If the key
//     was deleted, it makes the key's slot moved instead. So the key cannot appear there, and the operation continues
//     in the next index.
//   - An operation that meets a frozen, closed or moved slot in the last index that it knows begins again. It then
//     reads the words that locate the indexes.
//
// A Run reads these words once or twice for each owner, along with the first bucket. The Run was announced before, so
// an index that is current then is not reused until the Run ends. While keys move to an index of twice the slots,
// half of each bucket is reserved for them. In an index of the same size all slots are reserved. So a key that moves
// always finds a slot.
//
// A full table that has no room for a larger index rejects new keys with a [FullError] that says so. An index takes 8
// bytes a slot, and twice that while and after it replaces another.
//
// # Serving
//
// The table of a job of one rank can be served to processes that come and go ([Table.Serve], [Attach]). Clients do
// everything that a rank does, by one-sided operations on the window of the serving process. In place of an
// announcement a client holds a shared lock during its Runs. That costs one more message in each direction per Run.
// Space is freed only after that lock was held exclusively, too.
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
// A window.Server serves the table within limits, and lists and evicts sessions: see [Table.Windows].
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
// The window decides how the operations of a batch cross the network. Two commands show what each of its schemes
// contributes to inserts and look-ups in batches of 1000, over TCP on loopback. The first measures all schemes in one
// run, the second one of them:
//
//	go run ./bench schemes hashtable_insert_rate hashtable_lookup_rate
//	go run ./bench -device tcp -set pack=off hashtable_insert_rate hashtable_lookup_rate
//
// The benchmarks of this package have both ranks in one process.
package hashtable
