//go:build unix

package shortage

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"
)

// Descriptors lets this process open no more than left descriptors until end is called. Descriptors that it closes
// meanwhile can be opened again.
func Descriptors(left int) (end func() error, err error) {
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		return nil, fmt.Errorf("shortage: the limit of descriptors: %w", err)
	}
	var held placeholders
	end = func() error {
		held.release(len(held))
		return unix.Setrlimit(unix.RLIMIT_NOFILE, &before)
	}
	for range left + 1 {
		if err := held.open(); err != nil {
			return nil, errors.Join(err, end())
		}
	}
	// The system limits numbers, and assigns the lowest free one first. So the limit is the highest number in use,
	// unless a number became free in between. With a lower limit ppoll, which accepts no more descriptors than the
	// limit, would return at once, and the process would spin.
	slices.Sort(held)
	short := before
	short.Cur = uint64(held[left])
	held.release(1)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &short); err != nil {
		return nil, errors.Join(fmt.Errorf("shortage: limiting descriptors: %w", err), end())
	}
	// A lower number may become free: accept takes one before it finds that there is no connection, and then releases
	// it. In between it is neither free nor open.
	for full := false; !full; {
		switch err := held.open(); {
		case err == nil:
		case errors.Is(err, unix.EMFILE):
			if full = allOpen(int(short.Cur)); !full {
				runtime.Gosched()
			}
		default:
			return nil, errors.Join(err, end())
		}
	}
	slices.Sort(held)
	held.release(left)
	return end, nil
}

// placeholders are descriptors that are open only to occupy their numbers.
type placeholders []int

func (p *placeholders) open() error {
	fd, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("shortage: taking a descriptor: %w", err)
	}
	*p = append(*p, fd)
	return nil
}

// release closes the last n.
func (p *placeholders) release(n int) {
	rest := len(*p) - n
	for _, fd := range (*p)[rest:] {
		_ = unix.Close(fd)
	}
	*p = (*p)[:rest]
}

// allOpen reports whether each number below limit is that of an open descriptor.
func allOpen(limit int) bool {
	for fd := range limit {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil {
			return false
		}
	}
	return true
}
