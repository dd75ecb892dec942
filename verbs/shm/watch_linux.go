package shm

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// startTime tells processes apart that have had the same number.
func startTime(pid int) (uint64, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("shm: process %d: %w", pid, err)
	}
	// The command's name is in parentheses and may contain anything.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const startField = 19
	if len(fields) <= startField {
		return 0, fmt.Errorf("shm: process %d: /proc/%d/stat has %d fields", pid, pid, len(fields))
	}
	return strconv.ParseUint(string(fields[startField]), 10, 64)
}

// watcher notices the end of processes: one goroutine sleeps in one epoll over a
// pidfd for each.
type watcher struct {
	epoll, wake int
	done        chan struct{}

	mu      sync.Mutex
	closed  bool
	watched map[int32]func()
}

func newWatcher() (*watcher, error) {
	w := &watcher{epoll: -1, wake: -1, done: make(chan struct{}), watched: make(map[int32]func())}
	var err error
	if w.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("shm: epoll_create1: %w", err)
	}
	if w.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return nil, errors.Join(fmt.Errorf("shm: eventfd: %w", err), unix.Close(w.epoll))
	}
	if err := w.add(w.wake); err != nil {
		return nil, errors.Join(err, unix.Close(w.epoll), unix.Close(w.wake))
	}
	go w.run()
	return w, nil
}

func (w *watcher) add(fd int) error {
	event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}
	if err := unix.EpollCtl(w.epoll, unix.EPOLL_CTL_ADD, fd, &event); err != nil {
		return fmt.Errorf("shm: epoll_ctl: %w", err)
	}
	return nil
}

// process has ended called once when the process has ended, or finds that it has.
func (w *watcher) process(pid int, started uint64, ended func()) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err == unix.ESRCH {
		ended()
		return nil
	}
	if err != nil {
		return fmt.Errorf("shm: pidfd_open of process %d: %w", pid, err)
	}
	// Another process may have got the number before the pidfd was opened.
	if now, err := startTime(pid); err != nil || now != started {
		ended()
		return unix.Close(fd)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return unix.Close(fd)
	}
	w.watched[int32(fd)] = ended
	if err := w.add(fd); err != nil {
		delete(w.watched, int32(fd))
		return errors.Join(err, unix.Close(fd))
	}
	return nil
}

func (w *watcher) run() {
	defer close(w.done)
	events := make([]unix.EpollEvent, 16)
	for {
		n, err := unix.EpollWait(w.epoll, events, -1)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return
		}
		for _, e := range events[:n] {
			if int(e.Fd) == w.wake {
				return
			}
			w.ended(e.Fd)
		}
	}
}

func (w *watcher) ended(fd int32) {
	w.mu.Lock()
	ended := w.watched[fd]
	delete(w.watched, fd)
	w.mu.Unlock()
	_ = unix.Close(int(fd))
	if ended != nil {
		ended()
	}
}

func (w *watcher) close() error {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	if _, err := unix.Write(w.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0}); err != nil {
		return fmt.Errorf("shm: eventfd: %w", err)
	}
	<-w.done
	w.mu.Lock()
	defer w.mu.Unlock()
	err := errors.Join(unix.Close(w.epoll), unix.Close(w.wake))
	for fd := range w.watched {
		err = errors.Join(err, unix.Close(int(fd)))
	}
	clear(w.watched)
	return err
}
