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

func (a *admission) enter() bool {
	if a.inside.TryLock() {
		return true
	}
	// The admitted caller either sees missed when it leaves, or has left now.
	a.missed.Store(true)
	return a.inside.TryLock()
}

// leave reports whether a caller was not admitted.
func (a *admission) leave() (missed bool) {
	a.inside.Unlock()
	return a.missed.Load() && a.missed.Swap(false)
}
