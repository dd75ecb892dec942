package rails

import (
	"sync"
	"sync/atomic"
)

// A gate lets one caller in at a time and has nobody wait, because a task in virtual time may give
// its turn away inside. Who is sent away may miss what the one inside finds, so that one rings
// for all when it leaves.
type gate struct {
	inside sync.Mutex
	missed atomic.Bool
}

func (g *gate) enter() bool {
	if g.inside.TryLock() {
		return true
	}
	// The one inside either sees this when it leaves, or has left now.
	g.missed.Store(true)
	return g.inside.TryLock()
}

// leave reports whether somebody was sent away.
func (g *gate) leave() (missed bool) {
	g.inside.Unlock()
	return g.missed.Load() && g.missed.Swap(false)
}
