//go:build unix

package loopback

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/shortage"
)

// The error for a process that cannot open a socket says so. It does not advise to set up the loopback interface.
func TestAddressWithoutDescriptors(t *testing.T) {
	end, err := shortage.Descriptors(0)
	require.NoError(t, err)
	_, short := Address()
	require.NoError(t, end())
	require.ErrorIs(t, short, syscall.EMFILE)
	require.NotContains(t, short.Error(), "interface")
}
