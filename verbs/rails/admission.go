package rails

import (
	"sync"
	"sync/atomic"
)

// An admission admits one caller at a time and blocks no other, because a task in virtual time may yield inside. A
// caller that is not admitted may miss what the admitted one finds, so that one rings when it leaves.
type admission struct {
	inside sync.Mutex
	missed atomic.Bool
}

func (g *admission) enter() bool {
	if g.inside.TryLock() {
		return true
	}
	// The admitted caller either sees missed when it leaves, or has left now.
	g.missed.Store(true)
	return g.inside.TryLock()
}

// leave reports whether a caller was not admitted.
func (g *admission) leave() (missed bool) {
	g.inside.Unlock()
	return g.missed.Load() && g.missed.Swap(false)
}
