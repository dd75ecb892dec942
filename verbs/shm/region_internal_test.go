package shm

import (
	"testing"

	"github.com/stretchr/testify/require"

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
	next := &region{device: d}
	require.NoError(t, table.add(next))
	require.Equal(t, old.key%maxRegions, next.key%maxRegions)
	require.NotEqual(t, old.key, next.key)
	require.Nil(t, table.find(old.key))
}
