package pmi

import (
	"bufio"
	"errors"
	"fmt"
	"strings"

	"github.com/onesided/rma/internal/errtext"
)

// Limits that every manager keeps.
const (
	// MaxKey is the longest key that Put takes, in bytes.
	MaxKey = longestKey - partSuffix
	// longestKey is what managers keep whole, and partSuffix how much of it the number of
	// a part may take.
	longestKey = 63
	partSuffix = 5
	// longestValue is what the Server takes in one request.
	longestValue = 1024
	// maxPart is the longest value in one request, so that the request stays
	// within Slurm's 1024 bytes.
	maxPart = 800
	// MaxValue is the longest value that Put splits, in bytes.
	MaxValue = 64 << 10
	maxLine  = 4096
)

// Nobody is the rank that a rank blames when it takes back what it has said of another.
const Nobody = -1

// A Server says in its answer to init that it takes note of a blame, which is no part of PMI, and by the version that a rank may
// take it back, and may blame itself.
const (
	blameCommand = "rma_blame"
	blameField   = "rma_blame"
	blameVersion = "3"
	// notJoinedField is in the blame of a rank that could not join its job.
	notJoinedField = "joined=false"
)

var (
	// ErrNoManager: no process manager has started this process.
	ErrNoManager = errors.New("pmi: not started by a process manager")
	// ErrEnvironment: the manager's environment makes no sense.
	ErrEnvironment = errors.New("pmi: invalid environment")
	// ErrTaken: the connection to the manager was taken before.
	ErrTaken = errors.New("pmi: the connection to the process manager was used before in this process")
	// ErrNotFound: no rank has put the key before the last barrier.
	ErrNotFound = errors.New("pmi: key not found")
	// ErrProtocol: the other side does not speak the protocol.
	ErrProtocol = errors.New("pmi: protocol error")
	// ErrRefused: the manager answered that it failed.
	ErrRefused = errors.New("pmi: refused by the manager")
	// ErrArgument: a key or value that managers do not take.
	ErrArgument = errors.New("pmi: invalid argument")
)

// cause is an error within another of this package, whose text names the package once.
type cause struct{ error }

func (c cause) Error() string { return strings.TrimPrefix(c.error.Error(), "pmi: ") }

func (c cause) Unwrap() error { return c.error }

// message is one line: fields name=value, the first of which is cmd.
type message map[string]string

// parse reads the fields of a line, in any order. The value of msg, and of value,
// which comes last, may hold spaces in some managers' answers; no field that is
// looked at does.
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

// ok tells whether an answer is a success: rc is 0 or absent.
func (m message) ok() bool { return m["rc"] == "" || m["rc"] == "0" }

// newReader reads lines of at most maxLine bytes.
func newReader(r interface{ Read([]byte) (int, error) }) *bufio.Scanner {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, 1024), maxLine)
	return s
}

// checkKey refuses what a manager would cut or misread.
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
