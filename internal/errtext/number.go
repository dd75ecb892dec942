package errtext

import (
	"fmt"
	"strings"
)

// Count returns n and the noun in the right number, such as "1 element", "2 elements", "1 address" and "2 addresses".
func Count[N ~int | ~uint8 | ~uint16 | ~uint32 | ~uint64](n N, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "s"):
		noun += "e"
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Allowed returns the allowed numbers from 0 to last, as "allowed is 0" and "allowed are 0 to 2".
func Allowed(last int) string {
	if last == 0 {
		return "allowed is 0"
	}
	return fmt.Sprintf("allowed are 0 to %d", last)
}

// List returns the names of all in one phrase, as "Sum", and "Sum, Product and Replace".
func List[S fmt.Stringer](all []S) string {
	var text strings.Builder
	for i, s := range all {
		switch {
		case i == 0:
		case i == len(all)-1:
			text.WriteString(" and ")
		default:
			text.WriteString(", ")
		}
		text.WriteString(s.String())
	}
	return text.String()
}
