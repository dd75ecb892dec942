package tcp_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/tcp"
	"github.com/onesided/rma/verbs/verbstest"
)

func TestMain(m *testing.M) {
	verbstest.Main(m, func() (verbs.Device, error) { return tcp.Open(tcp.Options{Silence: await.Limit}) })
}

// Ranks that are in one process.
func TestConformance(t *testing.T) {
	verbstest.Run(t, verbstest.Config{Driven: true, Open: openPlain})
}

// Ranks that are processes. They use what ranks of one process do.
func TestProcessConformance(t *testing.T) {
	verbstest.Run(t, verbstest.Config{Driven: true, Variant: []string{"Closing"}, Open: openPlain, Peer: verbstest.Self})
}

func openPlain(t testing.TB) verbs.Device {
	device, err := tcp.Open(tcp.Options{Silence: await.Limit})
	require.NoError(t, err)
	return device
}
