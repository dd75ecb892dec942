// Package copied copies a field by value, which go vet finds.
package copied

import "github.com/onesided/rma/examples/grid"

func copied(field *grid.Field) int {
	other := *field
	return other.Rows
}
