package stats

import "slices"

// InRound returns all in the order of a round. Every other round goes backward, so that a drift of the machine does
// not always favor the same side.
func InRound[T any](round int, all []T) []T {
	ordered := slices.Clone(all)
	if round%2 == 1 {
		slices.Reverse(ordered)
	}
	return ordered
}
