//go:build ibverbs && cgo && linux

package ibv

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/verbs"
)

// OpenCard opens the card that the environment says. Where that names none and there is none it
// skips the test; a card that is named has to be there.
func OpenCard(t testing.TB) verbs.Device {
	options := FromEnvironment()
	device, err := Open(options)
	if options.Device == "" && errors.Is(err, errors.ErrUnsupported) {
		t.Skipf("skipped: no RDMA card; the virtual machine of softroce has one: %v", err)
	}
	require.NoError(t, err)
	return device
}
