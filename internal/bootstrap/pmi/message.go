package pmi

import (
	"bufio"
	"errors"
	"fmt"
	"strings"

	"github.com/onesided/rma/internal/errtext"
)

// Limits that every manager observes.
const (
	// MaxKey is the length of the longest key that Put accepts, in bytes.
	MaxKey = longestKey - partSuffix
	// longestKey is the length that managers keep whole. partSuffix is the length of the suffix with the number of a
	// part.
	longestKey = 63
	partSuffix = 5
	// longestValue is the length of the longest value that the Server accepts in one request.
	longestValue = 1024
	// maxPart is the length of the longest value in one request. It keeps the request within Slurm's 1024 bytes.
	maxPart = 800
	// MaxValue is the length of the longest value that Put splits, in bytes.
	MaxValue = 64 << 10
	maxLine  = 4096
)

// NoRank is the rank to blame in order to take back an earlier blame.
const NoRank = -1

// A Server announces in its response to init that it accepts blames, which are not part of PMI. The version means that
// a rank may take a blame back, and may blame itself.
const (
	blameCommand = "rma_blame"
	blameField   = "rma_blame"
	blameVersion = "3"
	// notJoinedField is in the blame of a rank that could not join its job.
	notJoinedField = "joined=false"
)

var (
	// ErrNoManager reports that no process manager has started this process.
	ErrNoManager = errors.New("pmi: not started by a process manager")
	// ErrEnvironment reports that the manager's environment is invalid.
	ErrEnvironment = errors.New("pmi: invalid environment")
	// ErrTaken reports that the connection to the manager was taken before.
	ErrTaken = errors.New("pmi: the connection to the process manager was used before in this process")
	// ErrNotFound reports that no rank has put the key before the last barrier.
	ErrNotFound = errors.New("pmi: key not found")
	// ErrProtocol reports that the other side does not speak the protocol.
	ErrProtocol = errors.New("pmi: protocol error")
	// ErrRejected reports that the manager responded with a failure.
	ErrRejected = errors.New("pmi: rejected by the manager")
	// ErrArgument reports a key or value that managers do not accept.
	ErrArgument = errors.New("pmi: invalid argument")
)

// cause wraps another error of this package, so that the text names the package once.
type cause struct{ error }

func (c cause) Error() string { return strings.TrimPrefix(c.error.Error(), "pmi: ") }

func (c cause) Unwrap() error { return c.error }

// A message is one line: fields name=value, the first of which is cmd.
type message map[string]string

// parse reads the fields of a line, in any order. The values of msg, and of value, which comes last, may have spaces
// in some managers' responses. No field that is used has any.
func parse(line string) (message, error) {
	m := make(message)
	for _, field := range strings.Fields(line) {
		name, value, ok := strings.Cut(field, "=")
		if !ok || name == "" {
			if _, hasMsg := m["msg"]; hasMsg {
				continue
			}
			return nil, fmt.Errorf("%w: field %.40q is not name=value", ErrProtocol, field)
		}
		if _, twice := m[name]; twice {
			return nil, fmt.Errorf("%w: field %.40q twice", ErrProtocol, name)
		}
		m[name] = value
	}
	if m["cmd"] == "" {
		return nil, fmt.Errorf("%w: no command in %.80q", ErrProtocol, line)
	}
	return m, nil
}

// ok reports whether a response is a success: rc is 0 or absent.
func (m message) ok() bool { return m["rc"] == "" || m["rc"] == "0" }

// newReader reads lines of at most maxLine bytes.
func newReader(r interface{ Read([]byte) (int, error) }) *bufio.Scanner {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, 1024), maxLine)
	return s
}

// checkKey rejects a key that a manager would truncate or misread.
func checkKey(key string) error {
	if key == "" || len(key) > MaxKey {
		return fmt.Errorf("%w: key %.80q has %s, allowed are 1 to %d", ErrArgument, key, errtext.Count(len(key), "byte"), MaxKey)
	}
	return checkPrintable("key", key, "=")
}

func checkPrintable(what, s, not string) error {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7f || strings.IndexByte(not, s[i]) >= 0 {
			return fmt.Errorf("%w: %s has byte %#x at %d; allowed are printable characters without spaces", ErrArgument, what, s[i], i)
		}
	}
	return nil
}
