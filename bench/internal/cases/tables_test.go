package cases

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/world"
)

// onTables runs body on rank 0 of two, beside an empty table.
func onTables(t *testing.T, body func(ctx context.Context, b *Buffers) error, everywhere func(ctx context.Context, b *Buffers) error) {
	t.Helper()
	require.NoError(t, world.Run(t.Context(), 2, func(ctx context.Context, w *world.World) error {
		b, err := New(ctx, w, []Cell{{ByName("hashtable_insert_rate"), 1000}}, nil, false)
		if err != nil {
			return err
		}
		if w.Rank() == 0 {
			if err := body(ctx, b); err != nil {
				return err
			}
		}
		if err := everywhere(ctx, b); err != nil {
			return err
		}
		return b.Close()
	}, world.WithDevice(device.Shm)))
}

func TestKeysOfTablesAreTheOtherRanks(t *testing.T) {
	onTables(t, func(ctx context.Context, b *Buffers) error {
		assert.Len(t, b.store.keys, insertable*keyBytes)
		for i := range 1000 {
			assert.Equal(t, 1, b.store.table.Owner(b.store.key(i)))
		}
		assert.NoError(t, insertMany(ctx, b, 500))
		assert.NoError(t, insertMany(ctx, b, 500))
		_, found, err := b.store.table.Get(ctx, b.store.key(999))
		assert.True(t, found, "the keys of a batch come after those of the one before")
		return err
	}, func(context.Context, *Buffers) error { return nil })
}

func TestATableThatIsTooFullForALoopIsMadeAnew(t *testing.T) {
	onTables(t, func(ctx context.Context, b *Buffers) error {
		return insertMany(ctx, b, 1000)
	}, func(ctx context.Context, b *Buffers) error {
		full := b.store.table
		if err := roomForKeys(ctx, b, insertable/1000-1, 1000); err != nil {
			return err
		}
		assert.Same(t, full, b.store.table, "there is room for that many")
		if err := roomForKeys(ctx, b, insertable/1000, 1000); err != nil {
			return err
		}
		assert.NotSame(t, full, b.store.table)
		assert.Zero(t, b.store.there)
		return nil
	})
}

func TestWhatIsLookedUpMustBeThere(t *testing.T) {
	onTables(t, func(ctx context.Context, b *Buffers) error {
		assert.EqualError(t, lookupMany(ctx, b, 10), "bench: the hash table has lost a key")
		if err := keysThere(ctx, b, 1, 10); err != nil {
			return err
		}
		assert.Equal(t, lookedUp, b.store.there)
		return lookupMany(ctx, b, 1000)
	}, func(context.Context, *Buffers) error { return nil })
}
