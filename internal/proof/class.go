package proof

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// Class returns a name for the kind of failure of err. There are few kinds, whatever the peer has sent, so failures of
// unproven peers can be counted by kind. own are kinds of the caller beside those of this package and of a connection.
func Class(err error, own ...error) string {
	for _, class := range append(own, ErrFull, ErrKey, ErrVersion, ErrProtocol, os.ErrDeadlineExceeded) {
		if errors.Is(err, class) {
			return class.Error()
		}
	}
	if Ended(err) {
		return "the connection ended"
	}
	return "another failure"
}

// Ended reports whether err means that the peer has ended the connection.
func Ended(err error) bool {
	for _, end := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, end) {
			return true
		}
	}
	return false
}
