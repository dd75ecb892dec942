package main

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes returns the attributes of a rank's process. It leads its own group, so that the processes that it starts
// can be ended with it. It dies with rmarun.
func attributes() *syscall.SysProcAttr {
	a := groupOfItsOwn()
	a.Pdeathsig = syscall.SIGKILL
	return a
}

// A deathPipe makes the kernel kill the process group of a rank when rmarun is gone. The whole group inherits one end
// of a pipe, whose owner is the group. Rmarun has the other end and never closes it. When rmarun dies, the kernel
// closes it, and sends a signal to the owner.
type deathPipe struct{ theirs, mine *os.File }

func newDeathPipe() (deathPipe, error) {
	theirs, mine, err := os.Pipe()
	return deathPipe{theirs, mine}, err
}

// files returns the files that a rank inherits.
func (l deathPipe) files() []*os.File { return []*os.File{l.theirs} }

// tie makes the group that leader leads the owner of the pipe. If the kernel does not support such signals, only the
// leader dies with rmarun.
func (l deathPipe) tie(leader int) {
	fd := l.theirs.Fd()
	if _, err := unix.FcntlInt(fd, unix.F_SETSIG, int(syscall.SIGKILL)); err != nil {
		return
	}
	if _, err := unix.FcntlInt(fd, unix.F_SETOWN, -leader); err == nil {
		_, _ = unix.FcntlInt(fd, unix.F_SETFL, unix.O_ASYNC)
	}
}

// started closes the end that only the rank needs.
func (l deathPipe) started() { _ = l.theirs.Close() }

// readable is FIONREAD, the request for the number of bytes in a pipe.
const readable = unix.TIOCINQ

// executable returns a path of this program that works after its file has been replaced, too.
func executable() (string, error) { return "/proc/self/exe", nil }

// adopt makes this process the parent of processes whose parents end.
func adopt() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// children returns the processes whose parent is this one.
func children() (pids []int) {
	self := os.Getpid()
	names, _ := filepath.Glob("/proc/[0-9]*")
	for _, name := range names {
		if pid, err := strconv.Atoi(filepath.Base(name)); err == nil && parent(pid) == self {
			pids = append(pids, pid)
		}
	}
	return pids
}

// parent returns the parent of a process, or 0.
func parent(pid int) int {
	stat, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	// The name of the program stands in parentheses and may contain any character. State and parent follow it.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return 0
	}
	ppid, _ := strconv.Atoi(string(fields[1]))
	return ppid
}

// withoutStop runs f on a thread that SIGTTOU does not stop.
func withoutStop(f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var set, before unix.Sigset_t
	set.Val[0] = 1 << (syscall.SIGTTOU - 1)
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &set, &before); err != nil {
		return err
	}
	defer func() { _ = unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil) }()
	return f()
}
