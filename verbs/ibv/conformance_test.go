//go:build ibverbs && cgo && linux

package ibv_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/ibv"
	"github.com/onesided/rma/verbs/verbstest"
)

func TestMain(m *testing.M) {
	asStranger()
	verbstest.Main(m, func() (verbs.Device, error) { return ibv.Open(ibv.FromEnvironment()) })
}

// limit is long: the card may be one in software, in a machine that is one as well.
const limit = time.Minute

// Ranks that are in one process.
func TestConformance(t *testing.T) {
	verbstest.Run(t, verbstest.Config{Limit: limit, Open: openCard})
}

// Ranks that are processes.
func TestProcessConformance(t *testing.T) {
	require.NoError(t, openCard(t).Close())
	verbstest.Run(t, verbstest.Config{Limit: limit, Open: openCard, Peer: verbstest.Self})
}

// openCard opens the card that the environment says, or skips the test where there is none.
func openCard(t testing.TB) verbs.Device {
	device, err := ibv.Open(ibv.FromEnvironment())
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	require.NoError(t, err)
	return device
}
