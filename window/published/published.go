package published

import (
	"errors"
	"expvar"
	"fmt"
	"sync"

	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// ErrTaken is a name under which something is published already.
var ErrTaken = errors.New("published: the name is taken")

// publishing is held while a name is looked for and taken.
var publishing sync.Mutex

// World publishes what a World tells by Stats. The name must be new in this process, whose ranks, if they are
// several, take one each.
func World(name string, w *world.World) error { return publish(name, func() any { return w.Stats() }) }

// Window publishes what a window tells by Stats, of whatever elements.
func Window(name string, win interface{ Stats() window.Stats }) error {
	return publish(name, func() any { return win.Stats() })
}

func publish(name string, value expvar.Func) error {
	publishing.Lock()
	defer publishing.Unlock()
	if expvar.Get(name) != nil {
		return fmt.Errorf("%w: %q", ErrTaken, name)
	}
	expvar.Publish(name, value)
	return nil
}
