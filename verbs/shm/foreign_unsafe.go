//go:build linux

package shm

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/onesided/rma/verbs"
)

// copyForeign copies between mine and memory of the neighbor's process that is not shared. The kernel does this for
// processes that may trace each other. It is sound because remote addresses are only numbers here, and mine does not
// move during the call.
//
// The kernel identifies the process by its number, which another process can have once the neighbor has ended. So
// copyForeign checks the pidfd before and after each call. While the pidfd says that the neighbor lives, the number is
// its own:
//
//   - A success is a copy to or from the neighbor's process.
//   - If the neighbor ended before the call, neither it nor another process is written to.
//   - If the neighbor ends within the call, and its number is reused within the call too, the call may access memory of
//     another process of the same user. It returns [verbs.ErrPeerGone]. The kernel has no such call for a pidfd.
func (n *neighbor) copyForeign(mine []byte, address uint64, right verbs.Access) error {
	if err := n.lives(); err != nil {
		return err
	}
	for len(mine) > 0 {
		local := unix.Iovec{Base: unsafe.SliceData(mine)}
		local.SetLen(len(mine))
		remote := unix.RemoteIovec{Base: uintptr(address), Len: len(mine)}
		call, done, err := "process_vm_writev", 0, error(nil)
		if right == verbs.RemoteRead {
			call = "process_vm_readv"
			done, err = unix.ProcessVMReadv(n.pid, []unix.Iovec{local}, []unix.RemoteIovec{remote}, 0)
		} else {
			done, err = unix.ProcessVMWritev(n.pid, []unix.Iovec{local}, []unix.RemoteIovec{remote}, 0)
		}
		if err := n.lives(); err != nil {
			return err
		}
		switch {
		case err == unix.ESRCH:
			return fmt.Errorf("shm: process %d: %w", n.pid, verbs.ErrPeerGone)
		case errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS):
			return &verbs.CapabilityError{Device: n.process.name, Capability: "reach memory of the program of another process", Reason: whyNot(call), Cause: err}
		case err != nil:
			return fmt.Errorf("shm: %s of process %d: %w", call, n.pid, err)
		case done == 0:
			return fmt.Errorf("shm: %s of process %d moved nothing", call, n.pid)
		}
		mine = mine[done:]
		address += uint64(done)
	}
	return nil
}

// whyNot explains why the system refused a call.
func whyNot(call string) string {
	scope, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope")
	if err == nil && strings.TrimSpace(string(scope)) != "0" {
		return call + " is rejected: /proc/sys/kernel/yama/ptrace_scope is " + strings.TrimSpace(string(scope)) + ", 0 permits it; or use window.Allocate"
	}
	return call + " is rejected by the system, perhaps by a container's profile; use window.Allocate"
}
