package pipe

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Numbers wrap. A message with number zero is recognized where the memory is zero.
func TestNumberZero(t *testing.T) {
	c := Config{Lines: 16, MaxMessage: 400}
	memory := make([]byte, c.Bytes())
	w, err := NewWriter(c, memory)
	require.NoError(t, err)
	r, err := NewReader(c, memory)
	require.NoError(t, err)
	const begun = 1<<32 - 16
	w.passed, r.passed, r.returned, r.notified = begun, begun, begun, begun
	w.freed.Store(begun)
	// The fourth message begins on the last line and has number zero, which the cleared payloads contain.
	for i := range 40 {
		n := 1
		if i < 2 {
			// These messages take seven lines each.
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
