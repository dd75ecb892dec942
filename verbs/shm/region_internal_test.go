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
	require.Equal(t, []uint32{old.key}, table.free, "what the next key is not to be")
	next := &region{device: d}
	require.NoError(t, table.add(next))
	require.Equal(t, old.key%maxRegions, next.key%maxRegions)
	require.NotEqual(t, old.key, next.key)
	require.Nil(t, table.find(old.key))
}

// TestNextKey has each random number choose the key that follows the first one of a slot, one in the midst and the
// last, and the key of a slot that had none.
func TestNextKey(t *testing.T) {
	const slot, first = 77, 1 << slotBits
	for _, last := range []uint32{slot, first | slot, 12345<<slotBits | slot, ^uint32(first-1) | slot} {
		chosen := map[uint32]bool{}
		for random := range uint32(keysOfSlot) {
			chosen[nextKey(last, random)] = true
		}
		require.Equal(t, keysOfSlot-2, len(chosen), "keys that can follow %#x", last)
		require.False(t, chosen[last], "%#x is followed by itself", last)
		for key := range chosen {
			if key%maxRegions != slot || key < first {
				require.FailNow(t, "no key of the slot", "%#x follows %#x", key, last)
			}
		}
	}
}
