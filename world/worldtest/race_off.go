//go:build !race

package worldtest

import "math"

// mostStarted is how many ranks Run has be processes at most.
const mostStarted = math.MaxInt
