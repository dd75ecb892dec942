//go:build !linux

package interrupt

import "os"

// atStart reports nothing here: only Linux tells which signals a process ignores.
func atStart(os.Signal) bool { return false }
