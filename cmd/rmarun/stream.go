package main

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A stream is the end of a pipe at which rmarun reads what a rank writes. It ends when nobody can write any more, or with
// what is there when it is finished.
type stream struct {
	*os.File
	// mu keeps another deadline from replacing that by which the stream is finished.
	mu       sync.Mutex
	finished bool
	// rest is what was there. It belongs to the reader.
	rest io.Reader
}

func (s *stream) Read(into []byte) (n int, err error) {
	if s.rest != nil {
		return s.rest.Read(into)
	}
	n, err = s.File.Read(into)
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return n, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.finished {
		return n, err
	}
	s.rest = io.LimitReader(s.File, s.waiting())
	if err := s.File.SetReadDeadline(time.Time{}); err != nil {
		return 0, err
	}
	return s.rest.Read(into)
}

// SetReadDeadline is that of the file until the stream is finished.
func (s *stream) SetReadDeadline(at time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.finished {
		return nil
	}
	return s.File.SetReadDeadline(at)
}

// finish has the stream end with what has been written, also where a process that the rank has left behind could still
// write.
func (s *stream) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finished = true
	// This fails where the stream has ended by itself.
	_ = s.File.SetReadDeadline(time.Unix(1, 0))
}

// waiting is how many bytes can be read without a wait.
func (s *stream) waiting() (n int64) {
	file, err := s.SyscallConn()
	if err != nil {
		return 0
	}
	_ = file.Control(func(fd uintptr) {
		var count int
		if count, err = unix.IoctlGetInt(int(fd), readable); err == nil {
			n = int64(count)
		}
	})
	return n
}

// finish has the streams of a rank end with what has been written.
func (r *rank) finish() {
	for _, s := range r.streams {
		s.finish()
	}
}
