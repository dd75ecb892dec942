//go:build !linux

package main

import "time"

// processorTime is known on Linux only.
func processorTime(int) (own, others time.Duration, ok bool) { return 0, 0, false }
