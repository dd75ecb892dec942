//go:build !linux

package interrupt

import "os"

// atStart returns false: only Linux reports which signals a process ignores.
func atStart(os.Signal) bool { return false }
