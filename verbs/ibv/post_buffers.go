//go:build ibverbs && cgo && linux

package ibv

import "sync"

// postBuffers has the unused buffers of a device. There are as many as were ever in use at once.
type postBuffers struct {
	mu   sync.Mutex
	free []*postBuffer
}

func (s *postBuffers) take() *postBuffer {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.free)
	if n == 0 {
		return new(postBuffer)
	}
	b := s.free[n-1]
	s.free = s.free[:n-1]
	return b
}

// leave takes back an empty buffer.
func (s *postBuffers) leave(b *postBuffer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, b)
}
