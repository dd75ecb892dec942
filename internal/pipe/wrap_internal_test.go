package pipe

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Numbers wrap, and the one that is zero is as good as others where the memory is.
func TestNumberZero(t *testing.T) {
	c := Config{Lines: 16, MaxMessage: 400}
	memory := make([]byte, c.Bytes())
	w, err := NewWriter(c, memory)
	require.NoError(t, err)
	r, err := NewReader(c, memory)
	require.NoError(t, err)
	const begun = 1<<32 - 16
	w.passed, r.passed, r.returned, r.told = begun, begun, begun, begun
	w.freed.Store(begun)
	// The fourth message begins on the last line, whose number is zero, where zeroes are.
	for i := range 40 {
		n := 1
		if i < 2 {
			// Seven lines each.
			n = 400
		}
		place, err := w.Place(n)
		require.NoError(t, err)
		require.NotNil(t, place)
		clear(place)
		w.Send(n)
		got, err := r.Next()
		require.NoError(t, err)
		require.Len(t, got, n)
		r.Free()
		got, err = r.Next()
		require.NoError(t, err)
		require.Nil(t, got)
	}
}
