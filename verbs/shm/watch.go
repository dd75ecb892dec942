package shm

import "sync/atomic"

// watch is one call of Watch.
type watch struct {
	device *device
	lost   func(cause error)
	over   atomic.Bool
}

// report calls lost once, unless the watch or its device has ended. It uses a goroutine of its own: lost may do
// anything, such as close the device, which waits for the goroutines that detect ends.
func (w *watch) report(cause error) {
	go func() {
		if !w.device.closed.Load() && !w.over.Swap(true) {
			w.lost(cause)
		}
	}()
}

// stop ends the watch: lost is not called after it, though a call may have begun.
func (w *watch) stop() { w.over.Store(true) }
