//go:build linux

package window_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world/worldtest"
)

// refuse makes the kernel refuse system calls to all threads of this process from
// now on, as containers do.
func refuse(numbers ...uint32) error {
	// Load the number, compare it with each, and answer EPERM or allow.
	filter := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}}
	for i, number := range numbers {
		filter = append(filter, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: number, Jt: uint8(len(numbers) - i)})
	}
	filter = append(filter,
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(syscall.EPERM)})
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	// Sound: the kernel copies the program before the call returns.
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return errno
	}
	return nil
}

// unreachable makes windows over the program's own memory, which rank 1 is not
// allowed to reach in rank 2.
var unreachable = register("create without process_vm", func(s *script) {
	if s.w.Rank() == 1 {
		s.ok(refuse(unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV))
	}
	memory := []int64{1, 2, 3}
	_, err := window.Create(s.ctx, s.w, memory)
	var create *window.CreateError
	s.check(errors.As(err, &create), "error is %v, want a *window.CreateError", err)
	s.check(create.Rank == 2, "it names rank %d: %v", create.Rank, err)
	for _, says := range []string{"process_vm_readv", "refused by the system"} {
		s.check(strings.Contains(err.Error(), says), "%q does not say %q", err, says)
	}
	s.fails(err, errors.ErrUnsupported)
	if s.w.Rank() == 1 {
		var missing *verbs.CapabilityError
		s.check(errors.As(err, &missing), "error is %v, want a *verbs.CapabilityError", err)
	}
	equal(s, "memory", memory, []int64{1, 2, 3})
	// Memory of the library needs no system call.
	win := allocate[int64](s, 3)
	s.ok(win.Fence(s.ctx))
	s.ok(win.Put(memory, (s.w.Rank()+1)%s.w.Size(), 0))
	s.ok(win.Fence(s.ctx, window.NoSucceed))
	equal(s, "window", win.Local(), memory)
	s.ok(win.Close())
})

// TestCreateRefused is of processes: goroutines need no system call.
func TestCreateRefused(t *testing.T) { worldtest.Processes(t, 3, unreachable) }
