package jobtest

import (
	"testing"

	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/verbs/sim"
	"github.com/onesided/rma/world"
)

// simulatedProfile is that of the cards on which bodies run.
const simulatedProfile = "ndr-2024"

// Simulated runs the body over n ranks in virtual time (world.Simulate), each of which has a simulated card. The ranks
// must wait for each other through their Worlds only: not through channels, package await or the clock. The seed of the
// simulator is testsize.Seed.
func Simulated(t *testing.T, n int, name string) {
	t.Helper()
	body := find(t, name)
	seed := testsize.Seed()
	if err := world.Simulate(t.Context(), Simulator(t, simulatedProfile, seed), n, body); err != nil {
		t.Errorf("seed %d: %v", seed, err)
	}
}

// Simulator makes a simulator without ranks, with cards of the profile that is named. It fails the test if there is none.
func Simulator(t testing.TB, profile string, seed uint64) *sim.Simulator {
	t.Helper()
	p, err := sim.ByName(profile)
	if err != nil {
		t.Fatal(err)
	}
	s, err := sim.New(p, seed)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
