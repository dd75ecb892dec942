package registration

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// Addresses depend on the order of uses only, and not on Go's.
func TestIdentities(t *testing.T) {
	var before []uint64
	for range 3 {
		i := newIdentities()
		first, second := make([]byte, 1<<20), make([]byte, 1<<20)
		got := []uint64{i.of(first[1000:2000]), i.of(second[:10]), i.of(first[1500:1600]), i.of(first[1500:2500]), i.of(second[5:15])}
		require.Equal(t, got[0]+500, got[2], "a part")
		require.Equal(t, got[0]+500, got[3], "an overlap")
		require.Equal(t, got[1]+5, got[4])
		// Distant parts of an object are as parts of two, until a buffer has something of both.
		apart := i.of(first[1<<19:][:10])
		require.NotEqual(t, got[0]+1<<19-1000, apart)
		joined := i.of(first[1900 : 1<<19+5])
		require.Equal(t, got[0]+900, joined)
		require.Equal(t, got[0]+1<<19-1000, i.of(first[1<<19:][:2]))
		// Memory outside of Go's heap has its own.
		require.Equal(t, i.of(constant[:]), i.of(constant[5:])-5)
		got = append(got, apart, joined)
		if before == nil {
			before = got
		}
		require.Equal(t, before, got)
	}
}

var constant [100]byte

// Identities of the dead are forgotten.
func TestIdentitiesAreForgotten(t *testing.T) {
	i := newIdentities()
	for range 16 {
		for range 2 * firstSweep {
			i.of(make([]byte, 64))
		}
		runtime.GC()
	}
	require.Less(t, i.known.Stats().Regions, 8*firstSweep)
}
