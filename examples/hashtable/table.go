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

	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// Config sizes a table. Every rank passes the same. The memory is allocated at once:
// about 16 bytes a slot, and RecordBytes.
type Config struct {
	// Slots is for how many keys each rank has slots at first, 1 to MaxSlots; it is rounded up to
	// a multiple of 8. More are made when they are needed, in the record space: see Growth in the
	// package's description.
	Slots int
	// RecordBytes is the room of each rank's entries, 8 to MaxRecordBytes; see
	// [CounterBytes] and [EntryBytes]. Some more is needed for values that were replaced and
	// whose space is not used again yet, and for slots: see Space and Growth in the package's description.
	RecordBytes int
	// Clients is how many processes may be attached to the table at once: see Serve. It is 0 in
	// a job of more than one rank.
	Clients int
}

// The most that a Config may ask for.
const (
	MaxSlots       = 1 << 32
	MaxRecordBytes = wordBytes << placeBits
)

// A Table is this rank's end of a table. All methods but Close may be called from any
// goroutine.
type Table struct {
	world *world.World
	// size is how many ranks own entries.
	size int

	// buckets are those of each owner's first index.
	buckets     int
	recordWords int
	// hash spreads the keys; tests choose one that makes them collide.
	hash func(key string) uint64

	// ahead: memory that is mapped is fetched ahead of its use. abreast: several ranks are flushed side by side.
	// Benchmarks show what that brings.
	ahead, abreast bool
	// part is how many operations have a batch be divided into parts. combines: of those of one kind on one
	// key one is carried out.
	part     int
	combines bool
	// patience is how long an operation waits for space that others are about to give. It is usualPatience; tests
	// choose another.
	patience time.Duration

	// words is the window of each rank, bytes the same as bytes.
	words *window.Window[uint64]
	bytes *window.Window[byte]

	// local is this rank's window; of a client, which visits tells that it is, it has a header only.
	local  []uint64
	visits bool
	// gate is nil of a table without clients.
	gate   *gate
	spaces []space
	// known are the latest views of owners that are not mapped; crowded counts, for each, the new keys that
	// lay far from their homes.
	known     []knownView
	crowded   []atomic.Uint32
	reclaimer reclaimer
	// late are Runs that were given up and have not ended; entered spreads announcements.
	late    sync.WaitGroup
	entered atomic.Uint32
	batches sync.Pool
	closed  atomic.Bool
	// These are those of Stats.
	operations, combined, retries, refills, growths atomic.Uint64
}

// A knownView is a view whose words are those of some moment each.
type knownView struct{ current, next atomic.Uint64 }

// New makes an empty table. It is collective; it blocks until every rank has called it,
// and if one fails all do. The options are for the table's window, and the same on every
// rank; see Measuring in the package's description. The table uses several operations:
// window.SameOp is not for it.
func New(ctx context.Context, w *world.World, config Config, options ...window.Option) (*Table, error) {
	if err := checkContext(ctx); err != nil {
		return nil, fmt.Errorf("hashtable: New: %w", err)
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
		if t.near() {
			t.setBags(mostWaitingNear)
		}
		return t, nil
	}
	if err := t.openGate(ctx, config.Clients); err != nil {
		return nil, errors.Join(fmt.Errorf("hashtable: %w", err), t.words.UnlockAll(ctx), t.words.Close())
	}
	return t, nil
}

// complete sets what follows from a table's size: so many buckets and record words at each of its owners.
func (t *Table) complete(buckets, recordWords, owners int) {
	t.ahead, t.abreast, t.part, t.combines, t.patience = true, true, leastPart, true, usualPatience
	t.size, t.buckets, t.recordWords = owners, buckets, recordWords
	t.hash, t.spaces = xxhash.Sum64String, make([]space, owners)
	t.known, t.crowded = make([]knownView, owners), make([]atomic.Uint32, owners)
	t.batches.New = func() any { return t.NewBatch() }
	t.setBags(mostWaiting)
}

// agree checks the ranks' configurations: all see all, so all come to the same end.
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

// Close ends the table. It is collective: every operation of every rank has returned
// when it does. It is called once, and not while this rank's operations run.
func (t *Table) Close() error {
	if t.closed.Swap(true) {
		return fmt.Errorf("hashtable: Close: %w", ErrClosed)
	}
	t.late.Wait()
	err := t.words.UnlockAll(context.Background())
	if t.gate != nil {
		err = errors.Join(err, t.gate.window.Close())
	}
	if err := errors.Join(err, t.words.Close()); err != nil {
		return fmt.Errorf("hashtable: Close: %w", err)
	}
	return nil
}

// Owner is the rank that has key's entry.
func (t *Table) Owner(key string) int { return t.home(key).owner }

// recordStart is the displacement of the record space in words: it is behind the first index and
// a block for another of its size.
func (t *Table) recordStart() int { return headerWords + 2*blockWords(t.buckets) }

// Get reads the bytes under key. A counter is an ErrKind; see [Table.Count].
func (t *Table) Get(ctx context.Context, key string) (value []byte, found bool, err error) {
	b, r, err := t.one(ctx, opGet, key, nil, 0)
	value = bytes.Clone(r.Value)
	t.release(b)
	return value, r.Found, err
}

// AppendGet is Get into the caller's memory: it appends the bytes to to.
func (t *Table) AppendGet(ctx context.Context, to []byte, key string) (value []byte, found bool, err error) {
	b, r, err := t.one(ctx, opGet, key, nil, 0)
	to = append(to, r.Value...)
	t.release(b)
	return to, r.Found, err
}

// Count reads the counter under key. Bytes are an ErrKind; see [Table.Get].
func (t *Table) Count(ctx context.Context, key string) (count uint64, found bool, err error) {
	b, r, err := t.one(ctx, opCount, key, nil, 0)
	t.release(b)
	return r.Count, r.Found, err
}

// Put sets the bytes under key. A counter there is an ErrKind: delete it first.
func (t *Table) Put(ctx context.Context, key string, value []byte) error {
	b, _, err := t.one(ctx, opPut, key, value, 0)
	t.release(b)
	return err
}

// Add adds delta to the counter under key, modulo 2^64, and returns the sum. A key that is
// not there begins at 0. Bytes there are an ErrKind.
func (t *Table) Add(ctx context.Context, key string, delta uint64) (uint64, error) {
	b, r, err := t.one(ctx, opAdd, key, nil, delta)
	t.release(b)
	return r.Count, err
}

// Delete removes key and tells whether it was there.
func (t *Table) Delete(ctx context.Context, key string) (found bool, err error) {
	b, r, err := t.one(ctx, opDelete, key, nil, 0)
	t.release(b)
	return r.Found, err
}

// one runs a batch of one operation. The value of its result is the batch's until release.
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

// release gives back a batch of one.
func (t *Table) release(b *Batch) {
	b.Reset()
	t.batches.Put(b)
}
