//go:build !linux

package tcp

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// tune does nothing: the device's own clock detects a silent peer.
func tune(int, time.Duration, bool) {}

// duplicateOnto makes one descriptor, which is open, another one of the file of a first. No process is started before it is marked to be
// closed there.
func duplicateOnto(first, second int) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := unix.Dup2(first, second); err != nil {
		return err
	}
	unix.CloseOnExec(second)
	return nil
}
