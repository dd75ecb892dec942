package tcp

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// fewSockets is the number of sockets that are polled without epoll.
const fewSockets = 4

// poller finds the sockets that have something. While they are few, all are read and sleepers poll each: a socket in an
// epoll takes longer to receive. With more sockets it uses epoll, level-triggered: what was not read is reported again,
// so that no wake-up depends on how far a reader has read.
type poller struct {
	fd int
	// events is for ready, which one goroutine calls at a time.
	events [64]unix.EpollEvent

	// few has the first sockets. many is set, once, when all sockets have moved to epoll. add, watch and remove are
	// called under the device's mutex.
	few  polled
	many atomic.Bool
}

// open opens the poller. few sets whether few sockets are polled without epoll.
func (p *poller) open(few bool) error {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return refused("epoll_create1", err)
	}
	p.fd = fd
	p.many.Store(!few)
	return nil
}

func (p *poller) close() { _ = unix.Close(p.fd) }

// add adds a socket under the number of its slot. Current sleepers may not know it, so the caller rings.
func (p *poller) add(fd int, slot int) error {
	if !p.many.Load() {
		if len(p.few.fds) < fewSockets {
			p.few.add(fd, slot)
			return nil
		}
		for i, socket := range p.few.fds {
			if err := p.move(int(socket.Fd), int(p.few.slots[i]), socket.Events&unix.POLLOUT != 0); err != nil {
				return err
			}
		}
		p.many.Store(true)
	}
	return p.control(unix.EPOLL_CTL_ADD, fd, slot, false)
}

// move moves one of the few sockets to epoll. An earlier attempt that failed at another socket may already have moved
// it. Since then its slot and its events may have changed.
func (p *poller) move(fd, slot int, output bool) error {
	err := p.control(unix.EPOLL_CTL_ADD, fd, slot, output)
	if errors.Is(err, unix.EEXIST) {
		return p.control(unix.EPOLL_CTL_MOD, fd, slot, output)
	}
	return err
}

func (p *poller) control(call, fd, slot int, output bool) error {
	event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(slot)}
	if output {
		event.Events |= unix.EPOLLOUT
	}
	if err := unix.EpollCtl(p.fd, call, fd, &event); err != nil {
		return fmt.Errorf("tcp: epoll_ctl: %w", err)
	}
	return nil
}

// watch sets whether to wait for room for output too. Current sleepers may not notice, so the caller rings.
func (p *poller) watch(fd int, slot int, output bool) {
	if p.many.Load() {
		// MOD cannot fail for a descriptor that was added.
		_ = p.control(unix.EPOLL_CTL_MOD, fd, slot, output)
	} else {
		p.few.watch(fd, output)
	}
}

func (p *poller) remove(fd int) {
	if p.many.Load() {
		_ = unix.EpollCtl(p.fd, unix.EPOLL_CTL_DEL, fd, nil)
	} else {
		p.few.remove(fd)
	}
}

// ready returns the slots of sockets that may have something, without waiting.
func (p *poller) ready(into []int32) []int32 {
	if !p.many.Load() {
		p.few.mu.Lock()
		defer p.few.mu.Unlock()
		return append(into, p.few.slots...)
	}
	n, err := epollNow(p.fd, &p.events)
	if err != nil {
		return into
	}
	for i := range n {
		into = append(into, p.events[i].Fd)
	}
	return into
}

// seat is a descriptor of one sleeper.
type seat struct {
	// fds are the seat's descriptor and what else is waited for.
	fds     [1 + fewSockets]unix.PollFd
	timeout unix.Timespec
	rung    bool
}

func newSeat() (*seat, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, refused("eventfd", err)
	}
	s := new(seat)
	s.fds[0] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
	return s, nil
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

// wait returns when the seat was rung, a socket has something, a non-negative limit is over, or a signal arrived.
// Sleepers check again in any case.
func (s *seat) wait(p *poller, limit time.Duration) {
	var timeout *unix.Timespec
	if limit >= 0 {
		s.timeout = unix.NsecToTimespec(int64(limit))
		timeout = &s.timeout
	}
	fds := s.fds[:1]
	if p.many.Load() {
		// The epoll descriptor is readable while any of its sockets has something.
		fds = append(fds, unix.PollFd{Fd: int32(p.fd), Events: unix.POLLIN})
	} else {
		fds = p.few.appendTo(fds)
	}
	_, _ = unix.Ppoll(fds, timeout, nil)
}
