//go:build linux

package shm_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/shm"
	"github.com/onesided/rma/verbs/verbstest"
)

func TestMain(m *testing.M) {
	verbstest.Main(m, func() (verbs.Device, error) { return shm.Open(shm.Options{}) })
}

// Ranks that are processes, both in this one.
func TestOpenConformance(t *testing.T) {
	// The race detector sees the same memory in TestFabricConformance.
	verbstest.Run(t, verbstest.Config{Driven: true, Variant: testsize.Either(nil, []string{"Memory", "Mapping"}), Open: openProcess})
}

// Ranks that are processes, each its own.
func TestProcessConformance(t *testing.T) {
	verbstest.Run(t, verbstest.Config{
		Driven: true, Variant: []string{"Connections", "Closing", "Memory", "Mapping", "Atomics"}, Open: openProcess, Peer: verbstest.Self,
	})
}

func openProcess(t testing.TB) verbs.Device {
	device, err := shm.Open(shm.Options{})
	require.NoError(t, err)
	return device
}
