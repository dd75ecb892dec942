//go:build linux

package shm

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A process that shares memory with others keeps no more descriptors for them than it counts.
func TestNeighborDescriptors(t *testing.T) {
	const n = 4
	before := openDescriptors(t)
	all := make([]*side, n)
	for i := range all {
		device, err := Open(Options{})
		require.NoError(t, err)
		defer func() { require.NoError(t, device.Close()) }()
		all[i] = newSide(t, device)
	}
	opened := openDescriptors(t)
	for _, one := range all {
		for _, other := range all {
			_, err := one.device.Neighbor(other.device.Address())
			require.NoError(t, err)
		}
	}
	require.Greater(t, opened, before)
	settled(t, openDescriptors, opened+n*keptDescriptors(n-1))
}
