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

// attributes of a rank's process: it leads a group of its own, so that what it
// starts can be ended with it, and dies with rmarun.
func attributes() *syscall.SysProcAttr {
	a := groupOfItsOwn()
	a.Pdeathsig = syscall.SIGKILL
	return a
}

// A deathPipe has the kernel kill the process group of a rank when rmarun is gone: all of the group inherits one end of
// a pipe, whose owner is the group, and rmarun has the other. An end that rmarun did not close is closed when it dies,
// and this is the event for which the owner gets a signal.
type deathPipe struct{ theirs, mine *os.File }

func newDeathPipe() (deathPipe, error) {
	theirs, mine, err := os.Pipe()
	return deathPipe{theirs, mine}, err
}

// files are what a rank inherits.
func (l deathPipe) files() []*os.File { return []*os.File{l.theirs} }

// tie makes the group that leader leads the owner. Where the kernel has no such signals the leader alone dies with
// rmarun.
func (l deathPipe) tie(leader int) {
	fd := l.theirs.Fd()
	if _, err := unix.FcntlInt(fd, unix.F_SETSIG, int(syscall.SIGKILL)); err != nil {
		return
	}
	if _, err := unix.FcntlInt(fd, unix.F_SETOWN, -leader); err == nil {
		_, _ = unix.FcntlInt(fd, unix.F_SETFL, unix.O_ASYNC)
	}
}

// started closes what only the rank needs.
func (l deathPipe) started() { _ = l.theirs.Close() }

// readable is the request for how many bytes a pipe has, FIONREAD.
const readable = unix.TIOCINQ

// executable is this program, also where its file has been replaced since it started.
func executable() (string, error) { return "/proc/self/exe", nil }

// adopt makes processes whose parents end children of this one.
func adopt() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// children are the processes whose parent is this one.
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

// parent is that of a process, or 0.
func parent(pid int) int {
	stat, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	// The name of the program stands in parentheses and may have any character in it. State and parent follow.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return 0
	}
	ppid, _ := strconv.Atoi(string(fields[1]))
	return ppid
}

// withoutStop runs f on a thread that no SIGTTOU stops.
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
