package cases

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/onesided/rma/examples/hashtable"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// The cases of a program that is built on windows: the hash table of the examples. Rank 0 works on the part of rank
// 1, so that everything goes over the link.

const (
	keyBytes   = 8
	valueBytes = 8
	// insertable is the number of keys for which a table has room. lookedUp is the number of keys in a table that is
	// only read.
	insertable = 1 << 20
	lookedUp   = 1 << 16
	filling    = 1000 // keys of a batch that fills a table
)

// A store is a hash table and the keys for it.
type store struct {
	world   *world.World
	options []window.Option
	table   *hashtable.Table
	batch   *hashtable.Batch
	keys    string // of rank 1, keyBytes each; only rank 0 has them
	there   int    // number of keys in the table
	value   []byte
}

// newStore makes an empty table. It is collective. keys are those of another store, or "".
func newStore(ctx context.Context, w *world.World, keys string, options []window.Option) (*store, error) {
	s := &store{world: w, options: options, keys: keys, value: make([]byte, valueBytes)}
	if err := s.renew(ctx); err != nil {
		return nil, err
	}
	if w.Rank() == 0 && keys == "" {
		s.keys = s.keysOf(1)
	}
	return s, nil
}

// renew replaces the table by an empty one.
func (s *store) renew(ctx context.Context) error {
	if s.table != nil {
		if err := s.table.Close(); err != nil {
			return err
		}
	}
	config := hashtable.Config{Slots: 2 * insertable, RecordBytes: insertable * hashtable.EntryBytes(keyBytes, valueBytes)}
	var err error
	if s.table, err = hashtable.New(ctx, s.world, config, s.options...); err != nil {
		return err
	}
	s.batch, s.there = s.table.NewBatch(), 0
	return nil
}

// keysOf returns keys that a rank owns, as many as a table has room for.
func (s *store) keysOf(rank int) string {
	var keys strings.Builder
	keys.Grow(insertable * keyBytes)
	for i := uint32(0); keys.Len() < insertable*keyBytes; i++ {
		key := hex.EncodeToString([]byte{byte(i >> 24), byte(i >> 16), byte(i >> 8), byte(i)})
		if s.table.Owner(key) == rank {
			keys.WriteString(key)
		}
	}
	return keys.String()
}

func (s *store) key(i int) string { return s.keys[i*keyBytes : (i+1)*keyBytes] }

// insert puts the next n keys into the table.
func (s *store) insert(ctx context.Context, n int) error {
	for i := range n {
		s.batch.Put(s.key(s.there+i), s.value)
	}
	s.there += n
	defer s.batch.Reset()
	return s.batch.Run(ctx)
}

// roomForKeys makes a new table if this one is too full for a loop.
func roomForKeys(ctx context.Context, b *Buffers, iterations, n int) error {
	s := b.store
	full := []bool{s.there+iterations*n > insertable}
	if err := world.Broadcast(ctx, s.world, 0, full); err != nil || !full[0] {
		return err
	}
	return s.renew(ctx)
}

func insertMany(ctx context.Context, b *Buffers, n int) error { return b.store.insert(ctx, n) }

// keysThere fills the table with the keys that lookupMany looks up, on rank 0.
func keysThere(ctx context.Context, b *Buffers, _, _ int) error {
	s := b.store
	for s.world.Rank() == 0 && s.there < lookedUp {
		if err := s.insert(ctx, min(filling, lookedUp-s.there)); err != nil {
			return err
		}
	}
	return nil
}

func lookupMany(ctx context.Context, b *Buffers, n int) error {
	s := b.store
	for range n {
		s.batch.Get(s.key(b.spot() % lookedUp))
	}
	defer s.batch.Reset()
	if err := s.batch.Run(ctx); err != nil {
		return err
	}
	for i := range n {
		if !s.batch.Result(i).Found {
			return fmt.Errorf("bench: the hash table has lost a key")
		}
	}
	return nil
}
