//go:build ibverbs && cgo && linux

package ibv

import "sync"

// desks are the unused desks of a device. There are as many as were ever in use at once.
type desks struct {
	mu   sync.Mutex
	free []*desk
}

func (s *desks) take() *desk {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.free)
	if n == 0 {
		return new(desk)
	}
	d := s.free[n-1]
	s.free = s.free[:n-1]
	return d
}

// leave returns a desk, which is empty.
func (s *desks) leave(d *desk) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, d)
}
