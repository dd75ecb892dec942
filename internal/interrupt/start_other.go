//go:build !linux

package interrupt

import "os"

// atStart returns false: only Linux tells which signals a process ignores.
func atStart(os.Signal) bool { return false }
