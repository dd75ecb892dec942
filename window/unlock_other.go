//go:build !amd64 || race

package window

import "sync/atomic"

// unlockStripe gives the lock back after the stores that it guards.
func unlockStripe(word *atomic.Uint32) { word.Store(0) }
