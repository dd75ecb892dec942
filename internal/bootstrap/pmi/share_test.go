package pmi

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestShare(t *testing.T) {
	t.Setenv("GOMAXPROCS", "")
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	for ranks, want := range map[int]string{0: "8", 1: "8", 2: "4", 3: "2", 8: "1", 100: "1"} {
		require.Equal(t, []string{"GOMAXPROCS=" + want}, Share(ranks), "%d ranks", ranks)
	}
	t.Setenv("GOMAXPROCS", "7")
	require.Empty(t, Share(2))
}
