//go:build unix

package shortage

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDescriptors(t *testing.T) {
	open := func() error {
		f, err := os.Open(os.DevNull)
		if err == nil {
			err = f.Close()
		}
		return err
	}
	for left := range 3 {
		require.NoError(t, open())
		end, err := Descriptors(left)
		require.NoError(t, err)
		files := make([]*os.File, left)
		for i := range files {
			files[i], err = os.Open(os.DevNull)
			require.NoError(t, err)
		}
		short := open()
		for _, f := range files {
			require.NoError(t, f.Close())
		}
		require.NoError(t, end())
		require.ErrorIs(t, short, syscall.EMFILE)
	}
	require.NoError(t, open())
}
