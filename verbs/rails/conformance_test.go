package rails_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/simtest"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/rails"
	"github.com/onesided/rma/verbs/sim"
	"github.com/onesided/rma/verbs/tcp"
	"github.com/onesided/rma/verbs/verbstest"
)

func TestMain(m *testing.M) {
	verbstest.Main(m, func() (verbs.Device, error) { return openTCP() })
}

// open opens a rank's cards, as one.
func open(t testing.TB, s *sim.Simulator, n int) verbs.Device {
	t.Helper()
	first := s.Open()
	cards := []verbs.Device{first}
	for len(cards) < n {
		cards = append(cards, first.OpenRail())
	}
	device, err := rails.New(cards...)
	require.NoError(t, err)
	return device
}

// openTCP opens two addresses of the loopback interface, where it has several, as one device.
func openTCP() (verbs.Device, error) {
	second := "127.0.0.2:0"
	if runtime.GOOS != "linux" {
		second = "127.0.0.1:0"
	}
	var cards []verbs.Device
	for _, address := range []string{"127.0.0.1:0", second} {
		card, err := tcp.Open(tcp.Options{Listen: address, Silence: await.Limit})
		if err != nil {
			return nil, err
		}
		cards = append(cards, card)
	}
	return rails.New(cards...)
}

func TestConformance(t *testing.T) {
	// TestConformanceOfShortStripes runs the whole suite.
	short := []string{}
	for _, c := range []struct {
		profile string
		cards   int
		variant []string
	}{{"ideal", 2, short}, {"pcix-2005", 2, short}, {"ndr-2024", 3, []string{"Transfer", "Order"}}} {
		t.Run(fmt.Sprintf("%s/%d", c.profile, c.cards), func(t *testing.T) {
			s := simtest.New(t, c.profile, 1)
			verbstest.Run(t, verbstest.Config{Variant: c.variant, Open: func(t testing.TB) verbs.Device { return open(t, s, c.cards) }})
		})
	}
}

// Requests of a few lines of the cache are striped, so that most of what the suite does is. What is
// deferred leaves when somebody polls.
func TestConformanceOfShortStripes(t *testing.T) {
	for n, variant := range map[int][]string{2: nil, 3: {"Transfer"}} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			s := simtest.New(t, "ndr-2024", 1)
			verbstest.Run(t, verbstest.Config{Driven: true, Variant: variant, Open: func(t testing.TB) verbs.Device {
				device := open(t, s, n)
				rails.StripeFrom(device, 70)
				return device
			}})
		})
	}
}

// Ranks that are in one process, on two addresses of the loopback interface.
func TestConformanceTCP(t *testing.T) {
	verbstest.Run(t, verbstest.Config{Driven: true, Variant: []string{"Connections", "Closing", "Channel"}, Open: func(t testing.TB) verbs.Device {
		device, err := openTCP()
		require.NoError(t, err)
		rails.StripeFrom(device, 70)
		return device
	}})
}

// Ranks that are processes.
func TestProcessConformanceTCP(t *testing.T) {
	verbstest.Run(t, verbstest.Config{Driven: true, Variant: []string{"Closing"}, Peer: verbstest.Self, Open: func(t testing.TB) verbs.Device {
		device, err := openTCP()
		require.NoError(t, err)
		return device
	}})
}
