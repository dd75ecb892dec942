// Package tty reports whether output appears on a terminal as it is written, even with a launcher between the program
// and the terminal.
//
//	if tty.Shows(os.Stderr) {
//		fmt.Fprint(os.Stderr, "\r45 %")
//	}
package tty

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	_ "github.com/onesided/rma/internal/platform"
)

// variable, in the environment of a rank, has the number of the pipe that its launcher passes on to a terminal. It
// identifies the pipe, and not a file to which a shell has redirected the stream since.
const variable = "RMA_TERMINAL"

// Shows reports whether output to file appears on a terminal at once. It does if file is a terminal, or a pipe that
// the launcher has named by [Through].
func Shows(file *os.File) bool {
	is := false
	// [os.File.Fd] would make the file block from then on.
	if raw, err := file.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			_, err := unix.IoctlGetWinsize(int(fd), unix.TIOCGWINSZ)
			is = err == nil
		})
	}
	return is || Through(file) == variable+"="+os.Getenv(variable)
}

// Through returns the variable that a launcher adds to the environment of a rank if it passes the output to pipe on
// to a terminal. It must pass the output on unchanged and at once. Through returns "" if the pipe is closed.
func Through(pipe *os.File) (environment string) {
	info, err := pipe.Stat()
	if err != nil {
		return ""
	}
	status := info.Sys().(*syscall.Stat_t)
	return fmt.Sprintf("%s=%d:%d", variable, status.Dev, status.Ino)
}
