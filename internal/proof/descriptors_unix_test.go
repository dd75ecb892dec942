//go:build unix

package proof

import (
	"io"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// silent is a connection whose peer sends nothing.
type silent struct{ io.Closer }

func (*silent) Close() error { return nil }

// Connections in all rooms of the process take a share of its descriptors, however many seats the rooms have.
func TestRoomsShareDescriptors(t *testing.T) {
	var before syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before))
	few := before
	few.Cur = 200
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few))
	defer func() { require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before)) }()
	rooms := []*Room{NewRoom(128), NewRoom(128)}
	var in []*silent
	for i := range 200 {
		if one := new(silent); rooms[i%2].Admit(one) {
			in = append(in, one)
		}
	}
	require.Len(t, in, 200/descriptorShare)
	// An empty room has its reserved seats nevertheless.
	late := NewRoom(128)
	for range reserved {
		require.True(t, late.Admit(new(silent)))
	}
	require.False(t, late.Admit(new(silent)))
	for conn := range late.entries {
		require.NoError(t, late.Leave(conn))
	}
	for i, one := range in {
		require.NoError(t, rooms[i%2].Leave(one))
	}
	require.Zero(t, unproven.Load())
	require.True(t, rooms[0].Admit(in[0]))
	require.NoError(t, rooms[0].Leave(in[0]))
}
