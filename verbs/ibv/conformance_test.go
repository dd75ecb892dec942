//go:build ibverbs && cgo && linux

package ibv_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/ibv"
	"github.com/onesided/rma/verbs/verbstest"
)

func TestMain(m *testing.M) {
	asStranger()
	verbstest.Main(m, func() (verbs.Device, error) { return ibv.Open(ibv.FromEnvironment()) })
}

// Ranks that are in one process.
func TestConformance(t *testing.T) {
	require.NoError(t, ibv.OpenCard(t).Close())
	verbstest.Run(t, verbstest.Config{Limit: await.Limit, Open: ibv.OpenCard})
}

// Ranks that are processes.
func TestProcessConformance(t *testing.T) {
	require.NoError(t, ibv.OpenCard(t).Close())
	verbstest.Run(t, verbstest.Config{Limit: await.Limit, Open: ibv.OpenCard, Peer: verbstest.Self})
}
