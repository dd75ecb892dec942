package shm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/verbs"
)

// TestRegions fills the table, and looks that a key which was given back is not the
// next region's.
func TestRegions(t *testing.T) {
	var table regionTable
	d := &device{name: "test"}
	all := make([]*region, maxRegions)
	for i := range all {
		all[i] = &region{device: d}
		require.NoError(t, table.add(all[i]))
		require.NotZero(t, all[i].key)
	}
	err := table.add(&region{device: d})
	var full *verbs.CapabilityError
	require.ErrorAs(t, err, &full)
	require.ErrorContains(t, err, "it has 16384 already")
	for _, r := range all {
		require.Same(t, r, table.find(r.key))
	}
	old := all[77]
	require.True(t, table.remove(old))
	require.False(t, table.remove(old))
	require.Nil(t, table.find(old.key))
	// Of keys that were only random one in 1<<18 would be the same as the key before.
	for range testsize.N(1 << 20) {
		next := &region{device: d}
		require.NoError(t, table.add(next))
		if next.key == old.key || next.key%maxRegions != old.key%maxRegions || table.find(old.key) != nil {
			require.FailNow(t, "a stale key", "%#x is followed by %#x", old.key, next.key)
		}
		require.True(t, table.remove(next))
		old = next
	}
}
