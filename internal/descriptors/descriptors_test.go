package descriptors

import (
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/shortage"
)

func TestFree(t *testing.T) {
	for _, left := range []int{0, 1, 5} {
		end := shortage.Begin(t, left)
		free, few := Free(math.MaxInt), Free(2)
		file, err := os.Open(os.DevNull)
		fewer := Free(math.MaxInt)
		if err == nil {
			err = file.Close()
		}
		again := Free(math.MaxInt)
		end()
		require.Equal(t, left, free)
		require.Equal(t, min(left, 2), few)
		require.Equal(t, max(left-1, 0), fewer)
		require.Equal(t, left > 0, err == nil, "%v", err)
		require.Equal(t, left, again)
	}
	require.Equal(t, 100, Free(100))
}
