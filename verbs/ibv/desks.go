//go:build ibverbs && cgo && linux

package ibv

import "sync"

// desks are those of a device that nobody uses: as many as have posted at once.
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

// leave takes a desk back, which is empty.
func (s *desks) leave(d *desk) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, d)
}
