package nettest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// The descriptors that a watcher inherits: a pipe that ends when the test's process does, and the namespaces.
const (
	lifeFile  = 3
	firstFile = 4
)

// A process with this variable is a watcher only: neither a test nor main runs.
func init() {
	text, ok := os.LookupEnv(watchVariable)
	if !ok {
		return
	}
	// Signals of a terminal are for the test. The watcher notices the test's end.
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM)
	_, _ = io.Copy(io.Discard, os.NewFile(lifeFile, "life"))
	if err := emptyAll(text); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// emptyAll empties the number of namespaces that text names.
func emptyAll(text string) error {
	spaces, err := strconv.Atoi(text)
	if err != nil {
		return fmt.Errorf("nettest: watcher: %w", err)
	}
	for i := range spaces {
		err = errors.Join(err, empty(firstFile+i))
	}
	return err
}

// empty kills the processes in a namespace and returns when there are none.
func empty(space int) error {
	var wanted unix.Stat_t
	if err := unix.Fstat(space, &wanted); err != nil {
		return fmt.Errorf("nettest: %w", err)
	}
	for {
		files, err := processesIn(&wanted)
		if err != nil || len(files) == 0 {
			return err
		}
		for _, file := range files {
			err = errors.Join(err, end(file))
		}
		if err != nil {
			return err
		}
	}
}

// processesIn opens the processes of a namespace. It opens a process before it looks at the namespace. If another
// process gets the number in between, a process that has ended is returned, and the next search finds the other.
func processesIn(wanted *unix.Stat_t) (files []int, err error) {
	paths, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, fmt.Errorf("nettest: %w", err)
	}
	for _, path := range paths {
		pid, err := strconv.Atoi(filepath.Base(path))
		if err != nil || pid == os.Getpid() {
			continue
		}
		file, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			// The process has ended.
			continue
		}
		var its unix.Stat_t
		if unix.Stat(path+"/ns/net", &its) != nil || its.Ino != wanted.Ino || its.Dev != wanted.Dev {
			_ = unix.Close(file)
			continue
		}
		files = append(files, file)
	}
	return files, nil
}

// end kills a process, waits until it has ended, and closes its file.
func end(process int) error {
	defer unix.Close(process)
	if err := unix.PidfdSendSignal(process, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("nettest: killing a process: %w", err)
	}
	for {
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(process), Events: unix.POLLIN}}, -1)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
