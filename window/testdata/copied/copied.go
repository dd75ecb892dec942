// Package copied copies a window by value, which go vet finds.
package copied

import "github.com/onesided/rma/window"

func copied(win *window.Window[int64]) int {
	other := *win
	return other.Len(0)
}
