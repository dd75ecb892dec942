package shm

import (
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

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
func (w *watcher) process(pid int, ended func()) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err == unix.ESRCH {
		ended()
		return nil
	}
	if err != nil {
		return fmt.Errorf("shm: pidfd_open of process %d: %w", pid, err)
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
