//go:build race

package verbstest

// raceEnabled tells that the race detector is in this build: it allocates.
const raceEnabled = true
