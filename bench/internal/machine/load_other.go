//go:build !linux

package machine

import "time"

// busyTime is unknown.
func busyTime() (busy time.Duration, known bool) { return 0, false }

// LoadAverage is unknown.
func LoadAverage() string { return "" }
