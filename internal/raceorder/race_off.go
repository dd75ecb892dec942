//go:build !race

package raceorder

// BeforeTelling is called before this process notifies another.
func BeforeTelling() {}

// AfterHearing is called after this process has heard from another.
func AfterHearing() {}
