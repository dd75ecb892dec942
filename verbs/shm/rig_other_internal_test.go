//go:build !linux

package shm

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// openProcesses skips: the form is for Linux only.
func openProcesses(t testing.TB) func() *Device {
	_, err := Open(Options{})
	require.ErrorIs(t, err, errors.ErrUnsupported)
	t.Skipf("skipped: ranks that are processes need Linux: %v", err)
	return nil
}
