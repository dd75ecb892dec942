//go:build !linux

package main

import "time"

// busyTime is unknown.
func busyTime() (busy time.Duration, known bool) { return 0, false }

// loadAverage is unknown.
func loadAverage() string { return "" }
