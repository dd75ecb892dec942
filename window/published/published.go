package published

import (
	"errors"
	"expvar"
	"fmt"
	"sync"

	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// ErrTaken means that something is published under the name already.
var ErrTaken = errors.New("published: the name is taken")

// publishing is held while a name is looked up and taken.
var publishing sync.Mutex

// World publishes the Stats of a World under a name, which must be new in this process: otherwise it returns an
// [ErrTaken]. Ranks that are goroutines of one process take a name each.
func World(name string, w *world.World) error { return publish(name, func() any { return w.Stats() }) }

// Window publishes the Stats of a window of any element type, as [World] does.
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
