//go:build !race

package raceorder

// BeforeTelling is called before others are told.
func BeforeTelling() {}

// AfterHearing is called when others have been heard.
func AfterHearing() {}
