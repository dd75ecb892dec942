package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// sniffBytes is how much of a file's beginning tells whether it is binary.
const sniffBytes = 8 << 10

// A file is one that was found under a PATH.
type file struct {
	path string
	// size is what it had then, and all that is read of it.
	size int64
}

// A listing is all files, in the order of PATHs and names.
type listing struct {
	files []file
	// unreadable is how many directories could not be read, other how many things are
	// neither files nor directories, symbolic links included.
	unreadable, other uint64
}

// list finds the files under the paths. What is wrong further down is named by
// problem; a path that does not exist or cannot be looked at is an error.
func list(ctx context.Context, paths []string, problem func(error)) (*listing, error) {
	l := &listing{}
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if err := l.add(ctx, path, info, problem); err != nil {
			return nil, err
		}
	}
	return l, nil
}

func (l *listing) add(ctx context.Context, path string, info fs.FileInfo, problem func(error)) error {
	if mode := info.Mode(); mode.IsRegular() {
		l.files = append(l.files, file{path, info.Size()})
		return nil
	} else if !mode.IsDir() {
		l.other++
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		l.unreadable++
		problem(err)
	}
	for _, entry := range entries {
		below := filepath.Join(path, entry.Name())
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			// It has gone since its name was read.
			continue
		}
		if err != nil {
			l.unreadable++
			problem(err)
			continue
		}
		if err := l.add(ctx, below, info, problem); err != nil {
			return err
		}
	}
	return nil
}

// open opens a file for reading. It does not wait, should the file be a pipe by now.
func open(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// readAt fills as much of buffer as the file has from offset on.
func readAt(f io.ReaderAt, buffer []byte, offset int64) (int, error) {
	n, err := f.ReadAt(buffer, offset)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

// isBinary tells whether a file that begins so is binary.
func isBinary(beginning []byte) bool {
	return bytes.IndexByte(beginning[:min(len(beginning), sniffBytes)], 0) >= 0
}

// A shorterError is a file that has lost some of its end since it was listed.
type shorterError struct {
	path      string
	size, now int64
}

func (e *shorterError) Error() string {
	return fmt.Sprintf("%s: has become shorter, from %d bytes to %d", e.path, e.size, e.now)
}
