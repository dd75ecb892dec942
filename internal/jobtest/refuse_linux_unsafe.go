//go:build linux

package jobtest

import (
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Refuse makes the kernel reject the system calls with these numbers in this process from now on, as the profile of a
// container does: they fail with EPERM. It cannot be undone, so it is for processes that a test has started.
func Refuse(numbers ...uint32) error {
	// The filter loads the number, compares it with each, and returns EPERM or allow.
	filter := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}}
	for i, number := range numbers {
		filter = append(filter, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: number, Jt: uint8(len(numbers) - i)})
	}
	filter = append(filter,
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(syscall.EPERM)})
	return install(filter)
}

// RefusePidfds makes the kernel reject requests of this process for pidfds of other processes from now on, as Refuse
// does. That includes pidfds by process number and by connection.
func RefusePidfds() error {
	// The option of getsockopt is the low half of its third argument.
	const option = 16 + 8*2
	return install([]unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_PIDFD_OPEN, Jt: 3},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_GETSOCKOPT, Jf: 3},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: option},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SO_PEERPIDFD, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(syscall.EPERM)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	})
}

// KillLong makes the kernel kill this process at a system call whose cost grows with a length, if the length is more
// than most bytes. These calls are fallocate, and madvise that populates or frees pages. It is for processes that a
// test has started.
func KillLong(most uint32) error {
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	// jump continues if the comparison holds, and otherwise skips instructions.
	jump := func(comparison uint16, k uint32, skip uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | comparison | unix.BPF_K, K: k, Jf: skip}
	}
	end := func(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }
	// Arguments have 8 bytes each, the low half first, from byte 16 on.
	const first, each = 16, 8
	var filter []unix.SockFilter
	forbid := func(number, length uint32, advice ...uint32) {
		rest := []unix.SockFilter{
			load(first + each*length + 4), jump(unix.BPF_JGT, 0, 1), end(unix.SECCOMP_RET_KILL_PROCESS),
			load(first + each*length), jump(unix.BPF_JGT, most, 1), end(unix.SECCOMP_RET_KILL_PROCESS),
		}
		for _, a := range advice {
			rest = append([]unix.SockFilter{load(first + each*2), jump(unix.BPF_JEQ, a, uint8(len(rest)))}, rest...)
		}
		filter = append(append(filter, load(0), jump(unix.BPF_JEQ, number, uint8(len(rest)))), rest...)
	}
	forbid(unix.SYS_FALLOCATE, 3)
	for _, advice := range []uint32{unix.MADV_DONTNEED, unix.MADV_POPULATE_WRITE, unix.MADV_COLLAPSE} {
		forbid(unix.SYS_MADVISE, 1, advice)
	}
	return install(append(filter, end(unix.SECCOMP_RET_ALLOW)))
}

// install makes the kernel apply a filter to the system calls of this process from now on.
func install(filter []unix.SockFilter) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("jobtest: filtering system calls: %w", err)
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	// Sound: the kernel copies the program before the call returns.
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return fmt.Errorf("jobtest: filtering system calls: %w", errno)
	}
	return nil
}
