// Package ownfile opens files that a variable of the environment names for writing, perhaps in a directory to which
// other users can write. Files of other users are not touched.
package ownfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	_ "github.com/onesided/rma/internal/platform"
)

// mode is the mode of a file that Open makes.
const mode = 0o600

// Open opens a file with flags like those of [os.OpenFile]. A new file is for this user only; an existing file keeps
// its mode. Open returns an error for a file that [Check] rejects, before anything is read or written. It never
// blocks: a named pipe opened for writing only is an error unless a process has it open for reading.
func Open(path string, flags int) (*os.File, error) {
	// A rejected file is not even opened: the reader of a pipe would notice.
	if err := Check(path); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, flags|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, mode)
	switch {
	case errors.Is(err, syscall.ELOOP):
		return nil, refuse(path, ErrLink)
	case errors.Is(err, syscall.ENXIO) && IsPipe(path):
		return nil, refuse(path, errUnread)
	case err != nil:
		return nil, err
	}
	info, err := file.Stat()
	if err == nil {
		err = check(path, info)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// IsPipe reports whether a path names a named pipe.
func IsPipe(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().Type() == fs.ModeNamedPipe
}

// Check returns an error if a path names a symbolic link, a regular file or pipe of another user, or a file with
// several names. Devices, which only root can make, are accepted.
func Check(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		// The caller asked to open a file, so the error names that call and not lstat.
		return refuse(path, errors.Unwrap(err))
	}
	return check(path, info)
}

// ErrLink reports that a path names a symbolic link.
var ErrLink = errors.New("is a symbolic link, which is not followed: name the file itself")

var errUnread = errors.New("is a named pipe that no process reads: start its reader first, or name a file")

func check(path string, info fs.FileInfo) error {
	status, self := info.Sys().(*syscall.Stat_t), os.Geteuid()
	switch kind := info.Mode().Type(); {
	case kind == fs.ModeSymlink:
		return refuse(path, ErrLink)
	case kind != 0 && kind != fs.ModeNamedPipe:
	case int(status.Uid) != self:
		return refuse(path, fmt.Errorf("belongs to user %d, and only files of user %d, who runs this program, are written: name another", status.Uid, self))
	case kind == 0 && status.Nlink > 1:
		return refuse(path, errors.New("has another name, by a hard link, and is not written for that: name another file"))
	}
	return nil
}

func refuse(path string, why error) error { return &os.PathError{Op: "open", Path: path, Err: why} }
