package hashtable

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// Config sets the size of a table. Every rank passes the same Config. New allocates all memory: about 16 bytes a
// slot, and RecordBytes.
type Config struct {
	// Slots is the number of slots of each rank at first, one for each key: 1 to MaxSlots, rounded up to a multiple
	// of 8. A table makes more when it needs them, in the record space: see Growth in the package documentation.
	Slots int
	// RecordBytes is the space for each rank's entries, 8 to MaxRecordBytes bytes: see [CounterBytes] and
	// [EntryBytes]. Allow more for replaced values whose space is not reused yet, and for slots: see Space and Growth
	// in the package documentation.
	RecordBytes int
	// Clients is the number of processes that may be attached to the table at once: see [Table.Serve]. It is 0 in a
	// job of more than one rank.
	Clients int
}

// The limits of a Config.
const (
	MaxSlots       = 1 << 32
	MaxRecordBytes = wordBytes << placeBits
)

// A Table is this rank's handle of a table. All methods but Close may be called from any goroutine.
type Table struct {
	world *world.World
	// size is the number of ranks that own entries.
	size int

	// buckets is the number of buckets of each owner's first index.
	buckets     int
	recordWords int
	// hash spreads the keys. Tests choose one that makes keys collide.
	hash func(key string) uint64

	// prefetches enables the prefetch of mapped memory, parallelFlush the concurrent flush of several ranks. Benchmarks
	// turn them off to show what they contribute.
	prefetches, parallelFlush bool
	// part is the number of operations from which a batch is divided into parts. combines enables carrying out one
	// operation for all of its kind on one key.
	part     int
	combines bool
	// patience is how long an operation waits for space that others are about to free. It is usualPatience except in
	// tests.
	patience time.Duration

	// words is the window, and bytes is a view of it as bytes.
	words *window.Window[uint64]
	bytes *window.Window[byte]

	// local is this rank's part of the window. A client, for which isClient is set, has only a header.
	local    []uint64
	isClient bool
	// gate is nil in a table without clients.
	gate   *gate
	spaces []space
	// known has the latest views of owners that are not mapped. farFromHome counts, for each owner, the new keys that
	// lay far from their homes.
	known       []knownView
	farFromHome []atomic.Uint32
	reclaimer   reclaimer
	// late counts abandoned Runs that have not ended. entered spreads the announcements.
	late    sync.WaitGroup
	entered atomic.Uint32
	batches sync.Pool
	closed  atomic.Bool
	// The counters of Stats.
	operations, combined, retries, refills, growths atomic.Uint64
}

// A knownView is a view whose two words may have been read at different moments.
type knownView struct{ current, next atomic.Uint64 }

// New makes an empty table. It is collective: it blocks until every rank has called it, and if one fails, all do. The
// options are those of the table's window, and the same on every rank. window.SameOp is not allowed, because the table
// uses several operations.
func New(ctx context.Context, w *world.World, config Config, options ...window.Option) (*Table, error) {
	if err := checkContext(ctx); err != nil {
		return nil, fmt.Errorf("hashtable: New: %w", err)
	}
	if w == nil {
		return nil, fmt.Errorf("hashtable: New: %w: nil World", window.ErrArgument)
	}
	if err := agree(ctx, w, config); err != nil {
		return nil, err
	}
	t := &Table{world: w}
	t.complete((config.Slots+bucketSlots-1)/bucketSlots, config.RecordBytes/wordBytes, w.Size())
	options = append([]window.Option{window.SingleElement(), window.Notifications(0), window.Seats(config.Clients)}, options...)
	var err error
	if t.words, err = window.Allocate[uint64](ctx, w, t.recordStart()+t.recordWords, options...); err != nil {
		return nil, fmt.Errorf("hashtable: %d slots and %d record bytes: %w", config.Slots, config.RecordBytes, err)
	}
	if t.bytes, err = window.View[byte](t.words); err == nil {
		err = t.words.LockAll(ctx, window.NoCheck)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("hashtable: %w", err), t.words.Close())
	}
	t.local = t.words.Local()
	atomic.CompareAndSwapUint64(&t.local[blockStart], 0, uint64(blockWords(t.buckets)/lineWords)+1)
	if config.Clients == 0 {
		if t.allMapped() {
			t.setCloseWords(mostWaitingMapped)
		}
		return t, nil
	}
	if err := t.openGate(ctx, config.Clients); err != nil {
		return nil, errors.Join(fmt.Errorf("hashtable: %w", err), unlockAll(t.words), t.words.Close())
	}
	return t, nil
}

// complete sets the fields that follow from the numbers of buckets, record words and owners.
func (t *Table) complete(buckets, recordWords, owners int) {
	t.prefetches, t.parallelFlush, t.part, t.combines, t.patience = true, true, leastPart, true, usualPatience
	t.size, t.buckets, t.recordWords = owners, buckets, recordWords
	t.hash, t.spaces = xxhash.Sum64String, make([]space, owners)
	t.known, t.farFromHome = make([]knownView, owners), make([]atomic.Uint32, owners)
	t.batches.New = func() any { return t.NewBatch() }
	t.setCloseWords(mostWaiting)
}

// agree checks the Configs of all ranks. Every rank checks all of them, so that all return the same error.
func agree(ctx context.Context, w *world.World, mine Config) error {
	all := make([]Config, w.Size())
	if err := world.AllGather(ctx, w, []Config{mine}, all); err != nil {
		return fmt.Errorf("hashtable: New: %w", err)
	}
	for rank, config := range all {
		if config.Slots < 1 || uint64(config.Slots) > MaxSlots {
			return fmt.Errorf("hashtable: New: %w: Slots %d of rank %d, allowed are 1 to %d", ErrConfig, config.Slots, rank, uint64(MaxSlots))
		}
		if config.RecordBytes < wordBytes || uint64(config.RecordBytes) > MaxRecordBytes {
			return fmt.Errorf("hashtable: New: %w: RecordBytes %d of rank %d, allowed are %d to %d", ErrConfig, config.RecordBytes, rank, wordBytes, uint64(MaxRecordBytes))
		}
		if most := window.MaxSeats; config.Clients < 0 || config.Clients > most || config.Clients > 0 && w.Size() > 1 {
			return fmt.Errorf("hashtable: New: %w: Clients %d of rank %d, allowed are 0 to %d, and 0 in a job of %d ranks", ErrConfig, config.Clients, rank, most, w.Size())
		}
		if config != all[0] {
			return fmt.Errorf("hashtable: New: %w: rank %d passed %+v, rank 0 %+v", ErrMismatch, rank, config, all[0])
		}
	}
	return nil
}

// Close ends the table. It is collective: when it returns, every operation of every rank has returned. It may be
// called once, and not while operations of this rank run.
func (t *Table) Close() error {
	if t.closed.Swap(true) {
		return fmt.Errorf("hashtable: Close: %w", ErrClosed)
	}
	t.late.Wait()
	err := unlockAll(t.words)
	if t.gate != nil {
		err = errors.Join(err, t.gate.window.Close())
	}
	if err := errors.Join(err, t.words.Close()); err != nil {
		return fmt.Errorf("hashtable: Close: %w", err)
	}
	return nil
}

// unlockAll ends the epoch of LockAll, which nothing may leave open: a window with an open epoch cannot be closed. So it
// has no context, which might have ended.
func unlockAll(words *window.Window[uint64]) error {
	return throughShortage(func() error { return words.UnlockAll(context.Background()) })
}

// throughShortage makes a call again until this process has the file descriptors that the call takes.
func throughShortage(call func() error) error {
	err := call()
	// A failed rank may have had a shortage of its own.
	for errors.Is(err, verbs.ErrShortage) && !errors.As(err, new(*world.PeerError)) {
		err = call()
	}
	return err
}

// Owner returns the rank that owns key.
func (t *Table) Owner(key string) int { return t.home(key).owner }

// recordStart returns the displacement of the record space in words. The space follows the first index and a block
// for another of its size.
func (t *Table) recordStart() int { return headerWords + 2*blockWords(t.buckets) }

// Get returns the bytes under key. The error is an ErrKind if the value is a counter: see [Table.Count].
func (t *Table) Get(ctx context.Context, key string) (value []byte, found bool, err error) {
	b, r, err := t.one(ctx, opGet, key, nil, 0)
	value = bytes.Clone(r.Value)
	t.release(b)
	return value, r.Found, err
}

// AppendGet is like Get, and appends the bytes to the caller's slice.
func (t *Table) AppendGet(ctx context.Context, to []byte, key string) (value []byte, found bool, err error) {
	b, r, err := t.one(ctx, opGet, key, nil, 0)
	to = append(to, r.Value...)
	t.release(b)
	return to, r.Found, err
}

// Count returns the counter under key. The error is an ErrKind if the value is bytes: see [Table.Get].
func (t *Table) Count(ctx context.Context, key string) (count uint64, found bool, err error) {
	b, r, err := t.one(ctx, opCount, key, nil, 0)
	t.release(b)
	return r.Count, r.Found, err
}

// Put sets the bytes under key. The error is an ErrKind if the value is a counter: delete it first.
func (t *Table) Put(ctx context.Context, key string, value []byte) error {
	b, _, err := t.one(ctx, opPut, key, value, 0)
	t.release(b)
	return err
}

// Add adds delta to the counter under key, modulo 2^64, and returns the sum. A new key begins at 0. The error is an
// ErrKind if the value is bytes.
func (t *Table) Add(ctx context.Context, key string, delta uint64) (uint64, error) {
	b, r, err := t.one(ctx, opAdd, key, nil, delta)
	t.release(b)
	return r.Count, err
}

// Delete removes key and reports whether it was there.
func (t *Table) Delete(ctx context.Context, key string) (found bool, err error) {
	b, r, err := t.one(ctx, opDelete, key, nil, 0)
	t.release(b)
	return r.Found, err
}

// one runs a batch of one operation. The value of the result belongs to the batch until release.
func (t *Table) one(ctx context.Context, kind opKind, key string, value []byte, delta uint64) (b *Batch, r Result, err error) {
	b = t.batches.Get().(*Batch)
	b.queue(kind, key, value, delta)
	if err = checkContext(ctx); err != nil {
		err = fmt.Errorf("hashtable: %s: %w", opNames[kind], err)
	} else {
		err = b.Run(ctx)
	}
	return b, b.Result(0), err
}

// release returns a batch of one to the pool.
func (t *Table) release(b *Batch) {
	b.Reset()
	t.batches.Put(b)
}
