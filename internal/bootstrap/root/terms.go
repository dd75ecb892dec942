package root

import (
	"cmp"
	"strings"
)

// Terms are the properties that all ranks of a job must have in common. Each is worded as a property of a rank, such
// as "byte order little-endian". They are printable, of at most 256 bytes, in the same order on all ranks, and
// separated by semicolons.
type Terms string

// Differ returns the first property in which two ranks differ, as each of them has it. Both results are empty if
// there is none.
func (t Terms) Differ(other Terms) (mine, theirs string) {
	for t != other {
		var rest, otherRest string
		mine, rest, _ = strings.Cut(string(t), ";")
		theirs, otherRest, _ = strings.Cut(string(other), ";")
		if mine != theirs {
			return cmp.Or(mine, "nothing of that"), cmp.Or(theirs, "nothing of that")
		}
		t, other = Terms(rest), Terms(otherRest)
	}
	return "", ""
}
