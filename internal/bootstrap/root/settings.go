package root

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strconv"
	"time"

	"github.com/onesided/rma/internal/bootstrap/bootconn"
	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/internal/proof"
)

// MaxSize is the greatest number of ranks.
const MaxSize = 1 << 16

// Settings say which rank of which job this process is.
type Settings struct {
	// Root is the host and port where rank 0 listens.
	Root string
	// Rank is the rank of this process, and Size the number of ranks.
	Rank, Size int
	// Key is the key of the job.
	Key []byte
	// TLS, if not nil, encrypts the exchange with at least version 1.3. In rank 0 it must have a certificate. The
	// other ranks check it for the host of Root, unless the configuration says otherwise.
	TLS *tls.Config
	// Terms are the properties besides the size that all ranks must have in common.
	Terms Terms
	// After is the [Member.Job] that this process has left last, or 0. While other ranks still need that job's root,
	// which may be at the same address, Join waits for it to end.
	After uint64
	// Silence is the time without an answer after which the other host is given up, at least three seconds. 0 means
	// 10 s.
	Silence time.Duration
	// Notice is the time after which a rank first logs what it waits for. It logs it again after twice as long, and so on. 0 means 3 s, and less
	// never. A host name that is unknown is logged at once.
	Notice time.Duration
	// Logger receives at once what is waited for, and which callers are rejected and why. A logger that blocks delays
	// nothing. With nil nothing is logged.
	Logger *slog.Logger
}

// log returns the logger.
func (s *Settings) log() *slog.Logger {
	if s.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return s.Logger
}

// connection returns the settings of the connections.
func (s *Settings) connection() *bootconn.Settings {
	return &bootconn.Settings{TLS: s.TLS, Silence: s.Silence}
}

const (
	rootVariable = "RMA_ROOT"
	rankVariable = "RMA_RANK"
	sizeVariable = "RMA_SIZE"
	keyVariable  = "RMA_KEY_FILE"
)

// FromEnvironment reads the settings from the environment. It returns ErrNoRoot if none of root, rank and size is
// set. An empty variable counts as not set. If key is nil, the key is that of the file that RMA_KEY_FILE names;
// otherwise that file is not read.
func FromEnvironment(key []byte) (*Settings, error) {
	set := 0
	for _, name := range []string{rootVariable, rankVariable, sizeVariable} {
		if os.Getenv(name) != "" {
			set++
		}
	}
	if set == 0 {
		return nil, ErrNoRoot
	}
	s := &Settings{Root: os.Getenv(rootVariable), Key: key}
	if err := checkRoot(s.Root); err != nil {
		return nil, err
	}
	var err error
	if s.Size, err = number(sizeVariable, "the number of ranks", 1, MaxSize); err != nil {
		return nil, err
	}
	if s.Rank, err = number(rankVariable, "this rank's number", 0, s.Size-1); err != nil {
		return nil, err
	}
	if s.Key != nil {
		return s, nil
	}
	path := os.Getenv(keyVariable)
	if path == "" {
		return nil, fmt.Errorf("%w: %s is not set, must be the path of a file with the job's key, which is made once: (umask 077; openssl rand -hex 32 > job.key)", ErrSettings, keyVariable)
	}
	if s.Key, err = proof.ReadKeyFile(path); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrSettings, keyVariable, err)
	}
	return s, nil
}

func number(name, what string, least, most int) (int, error) {
	text := os.Getenv(name)
	if text == "" {
		return 0, fmt.Errorf("%w: %s is not set, must be %s", ErrSettings, name, what)
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%w: %s=%q, must be %s, %d to %d", ErrSettings, name, text, what, least, most)
	}
	return n, nil
}

func checkRoot(root string) error {
	if root == "" {
		return fmt.Errorf("%w: %s is not set, must be the host:port where rank 0 listens", ErrSettings, rootVariable)
	}
	wrong := func(why string) error {
		return fmt.Errorf("%w: %s=%q %s, must be the host:port where rank 0 listens", ErrSettings, rootVariable, root, why)
	}
	host, port, err := net.SplitHostPort(root)
	if err != nil {
		return wrong("is not host:port")
	}
	if host == "" {
		return wrong("has no host")
	}
	if address, err := netip.ParseAddr(host); err == nil && (address.IsUnspecified() || address.IsMulticast()) {
		return wrong("has an address that nobody can be called at")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return wrong("has no port from 1 to 65535")
	}
	return nil
}

// check checks settings that a program has made.
func (s *Settings) check() error {
	if s == nil {
		return fmt.Errorf("%w: none", ErrSettings)
	}
	if err := checkRoot(s.Root); err != nil {
		return err
	}
	if s.Size < 1 || s.Size > MaxSize {
		return fmt.Errorf("%w: size %d, allowed are 1 to %d", ErrSettings, s.Size, MaxSize)
	}
	if s.Rank < 0 || s.Rank >= s.Size {
		return fmt.Errorf("%w: rank %d of %d, allowed are 0 to %d", ErrSettings, s.Rank, s.Size, s.Size-1)
	}
	if len(s.Key) < proof.MinKey || len(s.Key) > proof.MaxKey {
		return fmt.Errorf("%w: key of %s, allowed are %d to %d", ErrSettings, errtext.Count(len(s.Key), "byte"), proof.MinKey, proof.MaxKey)
	}
	if len(s.Terms) > maxTerms || !printable(string(s.Terms)) {
		return fmt.Errorf("%w: terms %.300q, allowed are %d printable characters", ErrSettings, s.Terms, maxTerms)
	}
	if err := s.connection().Check(s.Rank == 0); err != nil {
		return fmt.Errorf("%w: %w", ErrSettings, err)
	}
	return nil
}
