package bounds_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/bounds"
)

func TestContains(t *testing.T) {
	for _, test := range []struct {
		base, length, address, n uint64
		want                     bool
	}{
		{100, 10, 100, 10, true},
		{100, 10, 110, 0, true},
		{100, 10, 99, 1, false},
		{100, 10, 101, 10, false},
		{100, 10, 105, math.MaxUint64, false},
		{100, 10, math.MaxUint64, 5, false},
		{math.MaxUint64 - 5, 6, math.MaxUint64, 1, true},
		{math.MaxUint64 - 5, 6, math.MaxUint64, 2, false},
		{0, 0, 0, 0, true},
	} {
		require.Equal(t, test.want, bounds.Contains(test.base, test.length, test.address, test.n), "%+v", test)
	}
}

// memory is not on a stack, which moves.
var memory = make([]byte, 64)

func TestExtent(t *testing.T) {
	e := bounds.Of(memory[8:16])
	require.Equal(t, bounds.Extent{First: bounds.Address(memory) + 8, Length: 8}, e)
	require.True(t, e.Holds(memory[8:16]))
	require.True(t, e.Holds(memory[15:16]))
	require.False(t, e.Holds(memory[7:8]))
	require.False(t, e.Holds(memory[8:17]))
	require.Zero(t, bounds.Of(nil))
}

func TestHolds(t *testing.T) {
	memory := make([]byte, 64)
	require.True(t, bounds.Holds(memory, memory))
	require.True(t, bounds.Holds(memory[8:16], memory[8:16]))
	require.True(t, bounds.Holds(memory[:16], memory[16:16]))
	require.False(t, bounds.Holds(memory[8:16], memory[7:16]))
	require.False(t, bounds.Holds(memory[8:16], memory[8:17]))
	require.False(t, bounds.Holds(memory, make([]byte, 1)))
}

func TestAddress(t *testing.T) {
	require.Zero(t, bounds.Address(nil))
	memory := make([]byte, 64)
	require.Equal(t, bounds.Address(memory)+8, bounds.Address(memory[8:]))
	require.Equal(t, bounds.Address(memory), bounds.Address(memory[:0]))
	bounds.Word(memory[8:]).Store(1<<64 - 1)
	require.Equal(t, []byte{0, 255, 255, 255, 255, 255, 255, 255, 255, 0}, memory[7:17])
}

func ExampleContains() {
	memory := make([]byte, 100)
	base, length := bounds.Address(memory), uint64(len(memory))
	fmt.Println(bounds.Contains(base, length, base+90, 10), bounds.Contains(base, length, base+90, 11))
	// Output: true false
}
