// Package tty finds out whether somebody sees what a program writes as it is written: on a terminal, also where a
// launcher is between the program and the terminal.
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

// variable has, in the environment of a rank, the number of the pipe that its launcher passes on to a terminal. Of another
// file, to which a shell has redirected a stream since, it says nothing.
const variable = "RMA_TERMINAL"

// Shows reports whether what is written to file appears on a terminal at once: file is a terminal, or a pipe of which the
// launcher has said so by [Through].
func Shows(file *os.File) bool {
	is := false
	// [os.File.Fd] would have the file block from then on.
	if raw, err := file.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			_, err := unix.IoctlGetWinsize(int(fd), unix.TIOCGWINSZ)
			is = err == nil
		})
	}
	return is || Through(file) == variable+"="+os.Getenv(variable)
}

// Through is what a launcher adds to the environment of a rank if it passes what the rank writes to a pipe on to a
// terminal, as it is and at once. It is empty if the pipe is closed.
func Through(pipe *os.File) (environment string) {
	info, err := pipe.Stat()
	if err != nil {
		return ""
	}
	status := info.Sys().(*syscall.Stat_t)
	return fmt.Sprintf("%s=%d:%d", variable, status.Dev, status.Ino)
}
