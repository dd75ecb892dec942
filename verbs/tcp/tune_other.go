//go:build !linux

package tcp

import "time"

// tune does nothing: the device's own clock detects a silent peer.
func tune(int, time.Duration, bool) {}
