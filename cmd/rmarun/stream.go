package main

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A stream is rmarun's end of a pipe to which a rank writes. It ends when no process can write to it any more, or,
// once it is finished, after the bytes that are in it.
type stream struct {
	*os.File
	// mu keeps another deadline from replacing the one that finishes the stream.
	mu       sync.Mutex
	finished bool
	// rest is what was in the stream. It belongs to the reader.
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

// SetReadDeadline sets the deadline of the file until the stream is finished.
func (s *stream) SetReadDeadline(at time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.finished {
		return nil
	}
	return s.File.SetReadDeadline(at)
}

// finish ends the stream after the bytes that have been written, even if a process that the rank has left behind
// could still write.
func (s *stream) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finished = true
	// This fails if the stream has ended by itself.
	_ = s.File.SetReadDeadline(time.Unix(1, 0))
}

// waiting returns the number of bytes that can be read at once.
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

// finish ends the streams of a rank after the bytes that have been written.
func (r *rank) finish() {
	for _, s := range r.streams {
		s.finish()
	}
}
