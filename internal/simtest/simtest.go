// Package simtest makes simulators of network cards for tests:
//
//	s := simtest.New(t, "ndr-2024", 1)
//	err := world.Simulate(t.Context(), s, 4, body)
//
// A test whose cards differ from those of a profile changes the result of Profile and passes it to With.
package simtest

import (
	"testing"

	"github.com/onesided/rma/verbs/sim"
)

// New returns a simulator without ranks, with cards of the named profile. It fails the test if there is no such profile.
func New(t testing.TB, profile string, seed uint64) *sim.Simulator {
	t.Helper()
	return With(t, Profile(t, profile), seed)
}

// With returns a simulator without ranks, with cards of the profile. It fails the test if the profile is invalid.
func With(t testing.TB, profile sim.Profile, seed uint64) *sim.Simulator {
	t.Helper()
	s, err := sim.New(profile, seed)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Profile returns the named profile. It fails the test if there is none.
func Profile(t testing.TB, name string) sim.Profile {
	t.Helper()
	p, err := sim.ByName(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
