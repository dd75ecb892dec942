package traced_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/simtest"
	"github.com/onesided/rma/internal/traced"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/shm"
	"github.com/onesided/rma/verbs/tcp"
	"github.com/onesided/rma/verbs/verbstest"
)

// few is a number of records that makes rings wrap.
const few = 64

func TestMain(m *testing.M) { verbstest.Main(m, openTCP) }

func openTCP() (verbs.Device, error) {
	inner, err := tcp.Open(tcp.Options{Silence: await.Limit})
	if err != nil {
		return nil, err
	}
	device, _ := traced.New(inner, traced.Options{Records: few})
	return device, nil
}

func mustOpenTCP(t testing.TB) verbs.Device {
	device, err := openTCP()
	require.NoError(t, err)
	return device
}

func TestConformanceOverTCP(t *testing.T) {
	verbstest.Run(t, verbstest.Config{Driven: true, Variant: []string{"Channel"}, Open: mustOpenTCP})
}

func TestConformanceOverTCPOfProcesses(t *testing.T) {
	verbstest.Run(t, verbstest.Config{Driven: true, Variant: []string{"Closing"}, Open: mustOpenTCP, Peer: verbstest.Self})
}

func TestConformanceInSharedMemory(t *testing.T) {
	fabric := shm.NewFabric()
	verbstest.Run(t, verbstest.Config{Driven: true, Open: func(t testing.TB) verbs.Device {
		inner, err := fabric.Open()
		require.NoError(t, err)
		device, _ := traced.New(inner, traced.Options{Records: few})
		return device
	}})
}

func TestConformanceInVirtualTime(t *testing.T) {
	s := simtest.New(t, "ndr-2024", 1)
	verbstest.Run(t, verbstest.Config{Variant: []string{"Transfer"}, Open: func(testing.TB) verbs.Device {
		device, _ := traced.New(s.Open(), traced.Options{Records: few})
		return device
	}})
}
