package shm_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/shm"
	"github.com/onesided/rma/verbs/verbstest"
)

// Ranks that are goroutines.
func TestFabricConformance(t *testing.T) {
	fabric := shm.NewFabric()
	verbstest.Run(t, verbstest.Config{
		Driven: true,
		Open: func(t testing.TB) verbs.Device {
			device, err := fabric.Open()
			require.NoError(t, err)
			return device
		},
	})
}
