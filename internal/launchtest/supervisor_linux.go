package launchtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/onesided/rma/internal/await"
)

// These descriptors are inherited by a supervisor. One is a pipe that ends when the test's process does. Another is a
// pipe that no other process has and that ends with the supervisor. The last, if there is one, is a file that the
// supervisor only keeps open.
const (
	lifeFile = 3
	doneFile = 4
	heldFile = 5
)

// The supervisor's own exit statuses, as of timeout(1) and shells.
const (
	statusStopped = 124
	statusMissing = 127
	statusSignal  = 128
)

// A process with a supervisorConfig is a supervisor only: neither a test nor main runs.
func init() {
	if text, ok := os.LookupEnv(supervisorVariable); ok {
		os.Exit(supervisor(text, os.Args[1:]))
	}
}

// supervisor runs a command as a supervisorConfig in JSON says, and returns the exit status.
func supervisor(text string, arguments []string) int {
	_ = os.Unsetenv(supervisorVariable)
	syscall.CloseOnExec(lifeFile)
	syscall.CloseOnExec(doneFile)
	syscall.CloseOnExec(heldFile)
	var o supervisorConfig
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		fmt.Fprintf(os.Stderr, "launchtest: configuration of a supervisor %q: %v\n", text, err)
		return statusMissing
	}
	gone := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.NewFile(lifeFile, "life"))
		close(gone)
	}()
	status := 0
	if len(arguments) > 0 {
		status = o.run(arguments, gone)
	} else {
		<-gone
	}
	if o.Remove != "" {
		if err := os.RemoveAll(o.Remove); err != nil {
			fmt.Fprintf(os.Stderr, "launchtest: %v\n", err)
		}
	}
	return status
}

// run runs a command, and those beside it, until one ends or it must end them. It returns when none of their
// processes is left.
func (o supervisorConfig) run(arguments []string, gone <-chan struct{}) int {
	// Processes that lose their parents become children of this process.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		fmt.Fprintf(os.Stderr, "launchtest: adopting processes: %v\n", err)
		return statusMissing
	}
	defer sweep()
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM)
	ended := make(chan *os.ProcessState, 1+len(o.Beside)+len(o.Later))
	main, err := o.start(arguments, ended)
	for i := 0; i < len(o.Beside) && err == nil; i++ {
		_, err = o.start(o.Beside[i], ended)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "launchtest: %v\n", err)
		return statusMissing
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	listening := make(chan struct{})
	if len(o.Later) > 0 {
		go func() {
			if await.Until(ctx, "a process to listen", func() bool { return listens(o.Listens) }) == nil {
				close(listening)
			}
		}()
	}
	limited := ctx
	if o.Limit > 0 {
		var end context.CancelFunc
		limited, end = context.WithTimeout(ctx, o.Limit)
		defer end()
	}
	for {
		select {
		case s := <-signals:
			_ = main.Signal(s)
		case state := <-ended:
			return status(state)
		case <-listening:
			listening = nil
			for _, command := range o.Later {
				if _, err := o.start(command, ended); err != nil {
					fmt.Fprintf(os.Stderr, "launchtest: %v\n", err)
					return statusMissing
				}
			}
		case <-gone:
			return statusStopped
		case <-limited.Done():
			fmt.Fprintf(os.Stderr, "launchtest: %s has not ended within %v: killed, with all that it started\n", filepath.Base(arguments[0]), o.Limit)
			return statusStopped
		}
	}
}

// start starts a command and reports its end.
func (o supervisorConfig) start(arguments []string, ended chan<- *os.ProcessState) (*os.Process, error) {
	command := exec.Command(arguments[0], arguments[1:]...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	// If the supervisor is killed nevertheless, its command dies with it.
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if o.User != 0 {
		id := uint32(o.User)
		command.SysProcAttr.Credential = &syscall.Credential{Uid: id, Gid: id}
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = command.Wait()
		ended <- command.ProcessState
	}()
	return command.Process, nil
}

func status(state *os.ProcessState) int {
	if w, ok := state.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return statusSignal + int(w.Signal())
	}
	return state.ExitCode()
}

// sweep kills all descendants of this process and returns when there are none. A process that is born during a search
// is found by a later one: when its parent dies, it becomes a child of this process, and Wait4 returns for the
// parent. A parent is killed before its children. Otherwise it could reap a child, whose number could then be another
// process's.
func sweep() {
	for {
		for _, pid := range descendants(os.Getpid()) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if _, err := syscall.Wait4(-1, nil, 0, nil); errors.Is(err, syscall.ECHILD) {
			return
		}
	}
}

// descendants returns the processes that an ancestor has started, directly or indirectly, and that have not been
// reaped.
func descendants(ancestor int) (found []int) {
	children := make(map[int][]int)
	paths, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		// The name, in parentheses, may contain any character.
		_, rest, _ := strings.Cut(string(text[strings.LastIndexByte(string(text), ')')+1:]), " ")
		fields := strings.Fields(rest)
		if len(fields) < 2 {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		parent, _ := strconv.Atoi(fields[1])
		children[parent] = append(children[parent], pid)
	}
	found = children[ancestor]
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i]]...)
	}
	return found
}
