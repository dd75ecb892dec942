package tcp

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// poller tells which sockets have something, by epoll, level-triggered: what was not
// read is told again, so that no wake-up depends on who read how far.
type poller struct {
	fd int
	// events is for ready, which one goroutine calls at a time.
	events [64]unix.EpollEvent
}

func (p *poller) open() error {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return fmt.Errorf("tcp: epoll_create1: %w", err)
	}
	p.fd = fd
	return nil
}

func (p *poller) close() { _ = unix.Close(p.fd) }

// add makes a socket known under the number of its slot.
func (p *poller) add(fd int, slot int) error {
	event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(slot)}
	if err := unix.EpollCtl(p.fd, unix.EPOLL_CTL_ADD, fd, &event); err != nil {
		return fmt.Errorf("tcp: epoll_ctl: %w", err)
	}
	return nil
}

// watch says whether room for output is waited for, too.
func (p *poller) watch(fd int, slot int, output bool) {
	event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(slot)}
	if output {
		event.Events |= unix.EPOLLOUT
	}
	// It cannot fail for a descriptor that was added.
	_ = unix.EpollCtl(p.fd, unix.EPOLL_CTL_MOD, fd, &event)
}

func (p *poller) remove(fd int) { _ = unix.EpollCtl(p.fd, unix.EPOLL_CTL_DEL, fd, nil) }

// ready gives the slots of sockets that have something, without waiting.
func (p *poller) ready(into []int32) []int32 {
	n, err := epollNow(p.fd, &p.events)
	if err != nil {
		return into
	}
	for i := range n {
		into = append(into, p.events[i].Fd)
	}
	return into
}

// seat is a sleeper's own descriptor.
type seat struct {
	fds     [2]unix.PollFd
	timeout unix.Timespec
	rung    bool
}

func newSeat() (*seat, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("tcp: eventfd: %w", err)
	}
	return &seat{fds: [2]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}, {Events: unix.POLLIN}}}, nil
}

var one = []byte{1, 0, 0, 0, 0, 0, 0, 0}

// ring, hush and close are called under the channel's mutex.
func (s *seat) ring() {
	if !s.rung {
		s.rung = true
		_, _ = unix.Write(int(s.fds[0].Fd), one)
	}
}

func (s *seat) hush() {
	if s.rung {
		s.rung = false
		var count [8]byte
		_, _ = unix.Read(int(s.fds[0].Fd), count[:])
	}
}

func (s *seat) close() { _ = unix.Close(int(s.fds[0].Fd)) }

// wait returns when the seat was rung, a socket has something, limit is over if it is
// not negative, or a signal came: sleepers look again anyway.
func (s *seat) wait(p *poller, limit time.Duration) {
	var timeout *unix.Timespec
	if limit >= 0 {
		s.timeout = unix.NsecToTimespec(int64(limit))
		timeout = &s.timeout
	}
	// The epoll descriptor is readable while any of its sockets has something.
	s.fds[1].Fd = int32(p.fd)
	_, _ = unix.Ppoll(s.fds[:], timeout, nil)
}
