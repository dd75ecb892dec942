// Package copied copies an array by value, which go vet finds.
package copied

import "github.com/onesided/rma/examples/globalarray"

func copied(array *globalarray.Array[int]) int {
	other := *array
	return other.Len()
}
