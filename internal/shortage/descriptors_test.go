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
	for range 2 {
		require.NoError(t, open())
		end, err := Descriptors()
		require.NoError(t, err)
		short := open()
		require.NoError(t, end())
		require.ErrorIs(t, short, syscall.EMFILE)
	}
	require.NoError(t, open())
}
