//go:build unix

package shortage

import (
	"errors"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/testsize"
)

func open() error {
	f, err := os.Open(os.DevNull)
	if err == nil {
		err = f.Close()
	}
	return err
}

// A shortage ends with its test. To end it again leaves a later one alone.
func TestBegin(t *testing.T) {
	t.Run("ends with the test", func(t *testing.T) {
		Begin(t, 0)
		require.ErrorIs(t, open(), syscall.EMFILE)
	})
	require.NoError(t, open())
	first := Begin(t, 0)
	first()
	require.NoError(t, open())
	second := Begin(t, 0)
	first()
	short := open()
	second()
	require.ErrorIs(t, short, syscall.EMFILE)
	require.NoError(t, open())
}

func TestDescriptors(t *testing.T) {
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

// An accept may have a descriptor number when the shortage begins. When it gives the number back, the number cannot be
// opened.
func TestDescriptorsBesideAccept(t *testing.T) {
	for range testsize.N(3000) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		accepted := make(chan error, 1)
		go func() {
			for {
				if _, err := listener.Accept(); !errors.Is(err, syscall.EMFILE) {
					accepted <- err
					return
				}
			}
		}()
		end, err := Descriptors(0)
		require.NoError(t, err)
		file, short := os.Open(os.DevNull)
		require.NoError(t, end())
		if short == nil {
			require.NoError(t, file.Close())
		}
		require.NoError(t, listener.Close())
		require.ErrorIs(t, <-accepted, net.ErrClosed)
		require.ErrorIs(t, short, syscall.EMFILE)
	}
}
