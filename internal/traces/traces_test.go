package traces_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/traces"
)

// A trace is the same for the same seed, uses all of its buffers, and has their sizes.
func TestAll(t *testing.T) {
	require.Equal(t, traces.All(1), traces.All(1))
	require.NotEqual(t, traces.All(1), traces.All(2))
	for _, trace := range traces.All(3) {
		used := make([]bool, len(trace.Sizes))
		n := 0
		for u := range trace.Uses() {
			require.Equal(t, trace.Sizes[u.Buffer], u.Bytes)
			used[u.Buffer] = true
			n++
		}
		require.Len(t, trace.Order, n)
		require.NotContains(t, used, false, trace.Name)
		require.Less(t, trace.Bytes(), 1<<30)
	}
}

// The example prints the numbers of buffers and uses of each trace.
func Example() {
	for _, trace := range traces.All(1) {
		fmt.Printf("%-8s %6d buffers %6d uses\n", trace.Name, len(trace.Sizes), len(trace.Order))
	}
	// Output:
	// tiny          1 buffers  10000 uses
	// one           1 buffers  10000 uses
	// few           8 buffers  64000 uses
	// many        200 buffers  34383 uses
	// spectrum   1000 buffers 500500 uses
	// sort     100000 buffers 100000 uses
	// fleeting   5000 buffers  15000 uses
	// mix      106208 buffers 714287 uses
	// periods   30900 buffers 120000 uses
	// phases     9900 buffers 162000 uses
}
