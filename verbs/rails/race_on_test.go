//go:build race

package rails_test

const raceEnabled = true
