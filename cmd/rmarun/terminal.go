package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/onesided/rma/internal/interrupt"
)

// listenerName is the name by which rmarun starts itself as a signal listener: a process that catches typed signals
// while a rank reads the terminal.
const listenerName = "rmarun: listen"

// typed are the signals that a terminal sends to its foreground process group.
var typed = []os.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTSTP, syscall.SIGHUP}

// A terminal is the controlling terminal of rmarun's session. The rank that reads it is in its foreground. Methods
// belong to the goroutine of watch.
type terminal struct {
	file *os.File
	// reader is the rank whose process group is in the foreground. listener is a process of that group that ends by
	// the first typed signal. lifetime is a pipe whose end the listener does not outlive.
	reader   *rank
	listener *os.Process
	lifetime *os.File
}

// openTerminal opens the controlling terminal. It returns nil if there is none.
func openTerminal() *terminal {
	file, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	return &terminal{file: file}
}

// mine reports whether rmarun decides which group has the foreground: its own group has it, or the reader has.
func (t *terminal) mine() bool {
	group, err := unix.IoctlGetInt(int(t.file.Fd()), unix.TIOCGPGRP)
	return err == nil && (group == unix.Getpgrp() || t.reader != nil && group == t.reader.pid)
}

// give puts the group of a rank into the foreground.
func (t *terminal) give(r *rank) (err error) {
	t.takeBack()
	self, err := executable()
	if err != nil {
		return err
	}
	theirs, mine, err := os.Pipe()
	if err != nil {
		return err
	}
	defer theirs.Close()
	c := exec.Cmd{
		Path: self, Args: []string{listenerName}, Env: os.Environ(), Stdin: theirs,
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true, Pgid: r.pid},
	}
	if err := c.Start(); err != nil {
		return errors.Join(err, mine.Close())
	}
	t.reader, t.listener, t.lifetime = r, c.Process, mine
	if err := t.setForeground(r.pid); err != nil {
		t.takeBack()
		return err
	}
	return nil
}

// takeBack puts rmarun's group into the foreground again. A signal that rmarun sends to the reader later is not taken
// for a typed one.
func (t *terminal) takeBack() {
	if t == nil || t.reader == nil {
		return
	}
	_ = t.listener.Kill()
	_ = t.lifetime.Close()
	reader := t.reader
	t.reader = nil
	// The shell may have taken the foreground meanwhile, or the terminal may be gone.
	group, err := unix.IoctlGetInt(int(t.file.Fd()), unix.TIOCGPGRP)
	if err == nil && (group == reader.pid || errors.Is(syscall.Kill(-group, 0), syscall.ESRCH)) {
		_ = t.setForeground(unix.Getpgrp())
	}
}

func (t *terminal) setForeground(group int) error {
	return withoutStop(func() error {
		if err := unix.IoctlSetPointerInt(int(t.file.Fd()), unix.TIOCSPGRP, group); err != nil {
			return fmt.Errorf("giving it to the group of process %d: %w", group, err)
		}
		return nil
	})
}

// listen is the main function of the signal listener. Its exit status is 128 plus the number of the typed signal.
func listen() (status int) {
	caught := make(chan os.Signal, 1)
	interrupt.Notify(caught, typed...)
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1))
		caught <- syscall.Signal(0)
	}()
	s, _ := (<-caught).(syscall.Signal)
	return 128 + int(s)
}

// typedSignal returns the typed signal that the status of a signal listener reports, or 0. A signal may arrive before
// the listener catches it.
func typedSignal(s syscall.WaitStatus) syscall.Signal {
	switch {
	case s.Stopped():
		return s.StopSignal()
	case s.Signaled() && s.Signal() != syscall.SIGKILL:
		return s.Signal()
	case s.ExitStatus() > 128:
		return syscall.Signal(s.ExitStatus() - 128)
	}
	return 0
}

// orphaned reports whether no shell could continue rmarun if it stopped: no ancestor in its session is in another
// process group.
func orphaned() bool {
	group := unix.Getpgrp()
	session, _ := unix.Getsid(0)
	pid := os.Getppid()
	for pid > 0 {
		if its, err := unix.Getsid(pid); err != nil || its != session {
			return true
		}
		if its, err := unix.Getpgid(pid); err == nil && its != group {
			return false
		}
		pid = parent(pid)
	}
	return pid == 0
}

// handleTerminalStop handles a rank that the terminal has stopped because it reads the terminal or sets its modes in
// the background. If rmarun does not have the foreground, the whole job waits for the shell to bring it there, as any
// job of a shell does.
func (j *job) handleTerminalStop(r *rank, s syscall.Signal) {
	t := j.terminal
	switch {
	case t == nil || j.needsTerminal:
	case t.mine():
		if err := t.give(r); err != nil {
			j.giveUp(r, ": "+err.Error())
			return
		}
		j.listeners[t.listener.Pid] = r
		signalGroup(r.pid, syscall.SIGCONT)
	case orphaned():
		j.giveUp(r, ", and no shell can bring this job to the foreground: give it other input, such as </dev/null")
	default:
		// The ranks get another signal, so that it is not taken for another stop by the terminal.
		j.suspended = true
		j.signal(syscall.SIGTSTP)
		_ = syscall.Kill(0, s)
	}
}

// giveUp ends a job that cannot continue because a stopped rank cannot have the terminal.
func (j *job) giveUp(r *rank, why string) {
	fmt.Fprintf(os.Stderr, "rmarun: rank %d wants the terminal%s\n", r.number, why)
	j.needsTerminal, j.suspended = true, true
	j.endOthers()
}

// listenerEnded handles the end of the signal listener of a rank. It passes on a typed signal: the kernel has sent it
// to the group of that rank, and would have sent it to all of rmarun's. Any other signal was for that group only, or
// for the signal listener.
func (j *job) listenerEnded(r *rank, c change) {
	if t := j.terminal; t.reader == r && t.listener.Pid == c.pid {
		if !c.status.Stopped() {
			// Another process may have its number from now on.
			_ = t.listener.Release()
		}
		t.takeBack()
	}
	if s := typedSignal(c.status); slices.Contains(typed, os.Signal(s)) {
		j.typedSignal, j.typedTo = s, r
		_ = syscall.Kill(0, s)
	}
}
