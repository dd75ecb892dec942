// Package copied copies a window, a World and a Listener by value, which go vet finds.
package copied

import (
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

func copied(win *window.Window[int64], w *world.World, l *world.Listener) (int, int, string) {
	other, team, another := *win, *w, *l
	return other.Len(0), team.Size(), another.Addr().String()
}
