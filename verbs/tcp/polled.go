package tcp

import (
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// polled are the sockets of a poll(2), and the numbers of their slots.
type polled struct {
	mu    sync.Mutex
	fds   []unix.PollFd
	slots []int32
}

func (p *polled) add(fd, slot int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fds = append(p.fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	p.slots = append(p.slots, int32(slot))
}

// watch sets whether to wait for room for output too.
func (p *polled) watch(fd int, output bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := p.index(fd); i >= 0 {
		p.fds[i].Events = unix.POLLIN
		if output {
			p.fds[i].Events |= unix.POLLOUT
		}
	}
}

func (p *polled) remove(fd int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := p.index(fd); i >= 0 {
		p.fds, p.slots = slices.Delete(p.fds, i, i+1), slices.Delete(p.slots, i, i+1)
	}
}

// index returns the index of a socket, or -1.
func (p *polled) index(fd int) int {
	return slices.IndexFunc(p.fds, func(one unix.PollFd) bool { return one.Fd == int32(fd) })
}

// appendTo appends the entries for poll(2).
func (p *polled) appendTo(fds []unix.PollFd) []unix.PollFd {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append(fds, p.fds...)
}
