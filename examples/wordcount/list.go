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

// sniffBytes is the length of the beginning of a file that decides whether it is binary.
const sniffBytes = 8 << 10

// A file is a file that was found under a PATH.
type file struct {
	path string
	// size is the length when the file was listed. No more than that is read.
	size int64
}

// A listing holds all files, in the order of PATHs and names.
type listing struct {
	files []file
	// unreadable is the number of directories that could not be read. other is the number of entries that are neither
	// files nor directories, including symbolic links.
	unreadable, other uint64
}

// list finds the files under the paths. It reports errors further down by problem. It returns an error if a path does
// not exist or cannot be examined.
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
			// The file was removed after its name was read.
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

// open opens a file for reading. It does not block if the file is a pipe by now.
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

// isBinary reports whether a file with this beginning is binary.
func isBinary(beginning []byte) bool {
	return bytes.IndexByte(beginning[:min(len(beginning), sniffBytes)], 0) >= 0
}

// A shorterError reports a file that has become shorter since it was listed.
type shorterError struct {
	path      string
	size, now int64
}

func (e *shorterError) Error() string {
	return fmt.Sprintf("%s: has become shorter, from %d bytes to %d", e.path, e.size, e.now)
}
