package shm

import (
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// watcher detects the end of processes: one goroutine sleeps in one epoll over a pidfd for each.
type watcher struct {
	epoll, wake int
	done        chan struct{}

	mu     sync.Mutex
	closed bool
	// watched are the processes by a number of the watcher's own, which names them in the epoll. A descriptor could
	// already be another's when its event is processed.
	watched map[int32]watched
	last    int32
}

type watched struct {
	pidfd int
	ended func()
}

// wakeNumber names the eventfd in the epoll.
const wakeNumber = 0

func newWatcher() (*watcher, error) {
	w := &watcher{epoll: -1, wake: -1, done: make(chan struct{}), watched: make(map[int32]watched)}
	var err error
	if w.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("shm: epoll_create1: %w", err)
	}
	if w.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return nil, errors.Join(fmt.Errorf("shm: eventfd: %w", err), unix.Close(w.epoll))
	}
	if err := w.add(w.wake, wakeNumber); err != nil {
		return nil, errors.Join(err, unix.Close(w.epoll), unix.Close(w.wake))
	}
	go w.run()
	return w, nil
}

func (w *watcher) add(fd int, number int32) error {
	event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: number}
	if err := unix.EpollCtl(w.epoll, unix.EPOLL_CTL_ADD, fd, &event); err != nil {
		return fmt.Errorf("shm: epoll_ctl: %w", err)
	}
	return nil
}

// process makes the watcher call ended once when the process of a pidfd has ended. It returns a number for forget; it
// is never wakeNumber. The pidfd stays the caller's, who closes it after forget.
func (w *watcher) process(pidfd int, ended func()) (int32, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return wakeNumber, nil
	}
	number := w.free()
	if err := w.add(pidfd, number); err != nil {
		return wakeNumber, err
	}
	// An event that is already there waits for the mutex.
	w.watched[number] = watched{pidfd, ended}
	return number, nil
}

// free returns an unused number.
func (w *watcher) free() int32 {
	for {
		w.last++
		if _, taken := w.watched[w.last]; !taken && w.last != wakeNumber {
			return w.last
		}
	}
}

// forget ends the watch of a process. It returns ended if ended was not called.
func (w *watcher) forget(number int32) func() {
	w.mu.Lock()
	defer w.mu.Unlock()
	it, ok := w.watched[number]
	if !ok {
		return func() {}
	}
	delete(w.watched, number)
	// Without DEL a process that has ended would be reported until its pidfd is closed.
	_ = unix.EpollCtl(w.epoll, unix.EPOLL_CTL_DEL, it.pidfd, nil)
	return it.ended
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
			if e.Fd == wakeNumber {
				return
			}
			w.forget(e.Fd)()
		}
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
	clear(w.watched)
	return errors.Join(unix.Close(w.epoll), unix.Close(w.wake))
}
