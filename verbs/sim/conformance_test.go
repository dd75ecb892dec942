package sim_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/simtest"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/sim"
	"github.com/onesided/rma/verbs/verbstest"
)

// The suite's goroutines are no tasks: they let time pass by sleeping on the channels.
func TestConformance(t *testing.T) {
	for name, variant := range map[string][]string{"ideal": {}, "pcix-2005": {"Transfer"}, "ndr-2024": nil} {
		t.Run(name, func(t *testing.T) {
			s := simtest.With(t, simtest.Profile(t, name), 1)
			verbstest.Run(t, verbstest.Config{Variant: variant, Open: func(testing.TB) verbs.Device { return s.Open() }, Kill: func(device verbs.Device) {
				require.NoError(t, s.Inject(sim.Fault{Kind: sim.Kill, Rank: device.(*sim.Device).Rank()}))
			}})
		})
	}
}
