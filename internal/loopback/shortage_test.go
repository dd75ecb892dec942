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
	end := shortage.Begin(t, 0)
	_, short := Address()
	end()
	require.ErrorIs(t, short, syscall.EMFILE)
	require.NotContains(t, short.Error(), "interface")
}
