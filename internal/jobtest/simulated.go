package jobtest

import (
	"testing"

	"github.com/onesided/rma/internal/simtest"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/world"
)

// simulatedProfile is the profile of the simulated cards.
const simulatedProfile = "ndr-2024"

// Simulated runs the body on n ranks in virtual time (world.Simulate). Each rank has a simulated card. The ranks must
// wait for each other through their Worlds only: not through channels, package await or the clock. The seed of the
// simulator is testsize.Seed.
func Simulated(t *testing.T, n int, name string) {
	t.Helper()
	body := find(t, name)
	seed := testsize.Seed()
	if err := world.Simulate(t.Context(), simtest.New(t, simulatedProfile, seed), n, body); err != nil {
		t.Errorf("seed %d: %v", seed, err)
	}
}
