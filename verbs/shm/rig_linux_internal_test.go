//go:build linux

package shm

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func openProcesses(t testing.TB) func() *Device {
	return func() *Device {
		device, err := Open(Options{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, device.Close()) })
		return device
	}
}
