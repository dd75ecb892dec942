package errtext

import "fmt"

// Count returns n and what there are n of, as "1 element" and "2 elements".
func Count[N int | uint32 | uint64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Allowed returns which numbers from 0 to last are allowed, as "allowed is 0" and "allowed are 0 to 2".
func Allowed(last int) string {
	if last == 0 {
		return "allowed is 0"
	}
	return fmt.Sprintf("allowed are 0 to %d", last)
}
