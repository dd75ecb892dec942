//go:build !linux

package tcp

import (
	"fmt"
	"math"
	"time"

	"golang.org/x/sys/unix"
)

// poller finds the sockets that have something, by poll(2) over all of them.
type poller struct {
	sockets polled
	scratch []unix.PollFd // of ready, which one goroutine calls at a time
}

// open ignores few, because poll(2) is used in both cases.
func (p *poller) open(bool) error { return nil }
func (p *poller) close()          {}

// add adds a socket under the number of its slot. Current sleepers do not know it, so the caller rings.
func (p *poller) add(fd int, slot int) error {
	p.sockets.add(fd, slot)
	return nil
}

func (p *poller) watch(fd int, _ int, output bool) { p.sockets.watch(fd, output) }
func (p *poller) remove(fd int)                    { p.sockets.remove(fd) }

// ready returns the slots of sockets that have something, without waiting.
func (p *poller) ready(into []int32) []int32 {
	p.sockets.mu.Lock()
	defer p.sockets.mu.Unlock()
	p.scratch = append(p.scratch[:0], p.sockets.fds...)
	if n, err := unix.Poll(p.scratch, 0); err != nil || n == 0 {
		return into
	}
	for i := range p.scratch {
		if p.scratch[i].Revents != 0 {
			into = append(into, p.sockets.slots[i])
		}
	}
	return into
}

// seat is a pipe of one sleeper.
type seat struct {
	ends [2]int
	fds  []unix.PollFd
	rung bool
}

func newSeat() (*seat, error) {
	s := new(seat)
	if err := unix.Pipe(s.ends[:]); err != nil {
		return nil, fmt.Errorf("tcp: pipe: %w", err)
	}
	for _, fd := range s.ends {
		unix.CloseOnExec(fd)
		_ = unix.SetNonblock(fd, true)
	}
	return s, nil
}

// ring, hush and close are called under the channel's mutex.
func (s *seat) ring() {
	if !s.rung {
		s.rung = true
		_, _ = unix.Write(s.ends[1], []byte{1})
	}
}

func (s *seat) hush() {
	if s.rung {
		s.rung = false
		var rung [1]byte
		_, _ = unix.Read(s.ends[0], rung[:])
	}
}

func (s *seat) close() {
	_ = unix.Close(s.ends[0])
	_ = unix.Close(s.ends[1])
}

// wait returns when the seat was rung, a socket has something, a non-negative limit is over, or a signal arrived.
// Sleepers check again in any case.
func (s *seat) wait(p *poller, limit time.Duration) {
	s.fds = p.sockets.appendTo(append(s.fds[:0], unix.PollFd{Fd: int32(s.ends[0]), Events: unix.POLLIN}))
	timeout := -1
	if limit >= 0 {
		timeout = int(min((limit+time.Millisecond-1)/time.Millisecond, math.MaxInt32))
	}
	_, _ = unix.Poll(s.fds, timeout)
}
