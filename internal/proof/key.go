package proof

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/onesided/rma/internal/errtext"
)

// The minimum and maximum length of a key in bytes.
const (
	MinKey = 16
	MaxKey = 512
	// newKey is the length of a new key in bytes.
	newKey = 32
)

var (
	// ErrKeyForm reports text or bytes that are not a key.
	ErrKeyForm = errors.New("proof: not a key")
	// ErrKeyFile reports a key file that cannot hold a secret.
	ErrKeyFile = errors.New("proof: key file rejected")
)

// NewKey returns a random key of 32 bytes. It is for tests: users make keys with other tools.
func NewKey() []byte {
	key := make([]byte, newKey)
	_, _ = rand.Read(key) // it never fails
	return key
}

// ParseKey parses a key of hexadecimal digits, in either case.
func ParseKey(text string) ([]byte, error) {
	// Messages do not contain the text, because they end up in logs.
	key, err := hex.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("%w: a text of %d characters, must be an even number of hexadecimal digits and nothing else", ErrKeyForm, len(text))
	}
	if err := checkKey(key); err != nil {
		return nil, err
	}
	return key, nil
}

func checkKey(key []byte) error {
	if len(key) < MinKey || len(key) > MaxKey {
		return fmt.Errorf("%w: %d bytes, allowed are %d to %d", ErrKeyForm, len(key), MinKey, MaxKey)
	}
	return nil
}

// ReadKeyFile reads a key from a regular file in the form of [ParseKey]. Spaces and line ends around the key are
// ignored.
//
// It returns an ErrKeyFile for a file that others could have written, or that users outside its group could read. The
// file must belong to the caller and give group and others no permission, as with ssh keys. Or it must belong to root,
// as a Kubernetes secret does, and give its group at most read permission. The latter also applies if the caller is
// root.
func ReadKeyFile(path string) (key []byte, err error) {
	// Opening a pipe that no process writes to would block.
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("proof: key file: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("proof: key file: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: %s is %s, must be a regular file", ErrKeyFile, path, kindOf(info.Mode()))
	}
	if err := checkOwner(ownerOf(info), os.Geteuid(), info.Mode().Perm()); err != nil {
		return nil, fmt.Errorf("%w: %s %w", ErrKeyFile, path, err)
	}
	const longest = 2*MaxKey + 64
	text, err := io.ReadAll(io.LimitReader(file, longest+1))
	if err != nil {
		return nil, fmt.Errorf("proof: key file: %w", err)
	}
	if len(text) > longest {
		return nil, fmt.Errorf("%w: %s has more than %d bytes", ErrKeyFile, path, longest)
	}
	key, err = ParseKey(strings.TrimSpace(string(text)))
	if err != nil {
		return nil, errtext.Errorf("proof: %w: %s: %w; this makes one, for all ranks: (umask 077; openssl rand -hex %d > %[2]s)", ErrKeyFile, path, err, newKey)
	}
	return key, nil
}

// checkOwner returns an error for a key file that the process of user reader must not use, given its owner and mode.
func checkOwner(owner, reader int, mode fs.FileMode) error {
	const groupReads, bothAll = 0o040, 0o077
	open := mode & bothAll
	switch {
	case owner == 0 && open&^groupReads != 0:
		return fmt.Errorf("has mode %#o, and a file of root must give its group read permission at most, others nothing, as 0640 does", mode)
	case owner == 0:
	case owner != reader:
		return fmt.Errorf("belongs to user %d, must belong to user %d, who runs this program, or to root", owner, reader)
	case open != 0:
		return fmt.Errorf("has mode %#o, must give group and others nothing, as 0600 does", mode)
	}
	return nil
}

// kindOf returns a description of a file that is not regular.
func kindOf(mode fs.FileMode) string {
	switch mode.Type() {
	case fs.ModeDir:
		return "a directory"
	case fs.ModeNamedPipe:
		return "a named pipe"
	case fs.ModeSocket:
		return "a socket"
	}
	return "a device"
}
