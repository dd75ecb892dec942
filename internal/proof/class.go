package proof

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// Class names the kind of failure that err is, one of a few whatever the peer has sent,
// so that what strangers do can be counted by it. Besides this package's own failures
// and those of a connection it may be one of the caller's.
func Class(err error, own ...error) string {
	for _, class := range append(own, ErrCrowded, ErrKey, ErrVersion, ErrProtocol, os.ErrDeadlineExceeded) {
		if errors.Is(err, class) {
			return class.Error()
		}
	}
	if Ended(err) {
		return "the connection ended"
	}
	return "another failure"
}

// Ended reports whether err is that the peer has ended the connection.
func Ended(err error) bool {
	for _, end := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, end) {
			return true
		}
	}
	return false
}
