package job

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/onesided/rma/internal/bootstrap/address"
	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/internal/proof"
	"github.com/onesided/rma/internal/tuning"
	"github.com/onesided/rma/regcache"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/ibv"
	"github.com/onesided/rma/verbs/tcp"
)

// An Option changes how a job is made or joined.
type Option = func(*Settings)

type Settings struct {
	logger   *slog.Logger
	patience time.Duration
	stall    time.Duration
	// device is the only one to use, empty for the best.
	device string
	host   string
	// cores is how many this rank may use.
	cores int
	key   []byte
	// keyless is WithoutKey.
	keyless bool
	// address is where to listen, as package address understands it, or several with commas
	// between them; empty for the best. They have been found to be listen.
	address string
	listen  []netip.Addr
	tls     *tls.Config
	// noTLS: WithTLS has no configuration.
	noTLS   bool
	silence time.Duration
	// network opens the device that reaches every rank, nil for the one over TCP.
	network func(rank int) (verbs.Device, error)
	// trace is the file for what the rank does over the network, empty for none.
	trace string
	// hook is told of what the rank does, if not nil. stats has windows count, statsTo where a table goes, if not
	// empty.
	hook  func(*Event)
	stats bool
	// debug has windows look for misuse.
	debug   bool
	statsTo string
	// tuning has the switches of the benchmark and of tests.
	tuning tuning.Tuning
	// kept bounds the memory that stays registered with a card while no operation uses it. Only tests change it from
	// keptBytes and keptRegions.
	kept regcache.Limits
	// unshared tells that no memory is shared with others, whatever host they are on.
	unshared bool
	// port is where the devices of sessions are reached, nil for ports of their own; dialed is where this
	// rank has reached rank 0, empty but in sessions.
	port   *tcp.Port
	dialed string
	// attempted is called with the error of each attempt of Dial that is made again. Only Dial sets it.
	attempted func(why error)
	// session is that of the World, nil if it has none. yield is that of the endpoint, nil for that of goroutines.
	session *Session
	yield   func()
	// longestSleep bounds what is lost if the rank that should wake this one was cancelled or died before it did. Four
	// events wake no rank, and are found only after a sleep:
	//   - a rank is silent with which the root of a barrier has no connection: the root connects to ask only when it has
	//     waited long;
	//   - the limit of a within is over;
	//   - a rank has called Shrink that a rank waits for in a collective which shares no memory with it, or is the root of a barrier;
	//   - a rank has left for which a window's lock or notification waits in shared memory.
	// Only tests set another than defaultLongestSleep: longer than they last, so that who is not woken hangs, or short, so
	// that a wait looks soon.
	longestSleep time.Duration
}

// WithLogger sets the logger of the job.
func WithLogger(logger *slog.Logger) Option {
	return func(s *Settings) {
		if logger == nil {
			logger = slog.New(slog.DiscardHandler)
		}
		s.logger = logger
	}
}

// warnings passes what is at least a warning.
type warnings struct{ slog.Handler }

func (h warnings) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && h.Handler.Enabled(ctx, level)
}

func (h warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return warnings{h.Handler.WithAttrs(attrs)}
}

func (h warnings) WithGroup(name string) slog.Handler { return warnings{h.Handler.WithGroup(name)} }

// WithDevice makes all ranks reach each other over the named device.
func WithDevice(name string) Option { return func(s *Settings) { s.device = name } }

// WithNetwork makes ranks that share no memory use the devices that open returns, one for each rank.
func WithNetwork(open func(rank int) (verbs.Device, error)) Option {
	return func(s *Settings) { s.network = open }
}

// rdmaOptions are those of an RDMA card, but for what is the World's.
func (s *Settings) rdmaOptions() ibv.Options {
	o := ibv.FromEnvironment()
	o.MTU = s.tuning.MTU
	return o
}

// Tune returns an option for the benchmark and tests: change sets switches of the job.
func Tune(change func(t *tuning.Tuning)) Option { return func(s *Settings) { change(&s.tuning) } }

// Tuning returns the switches of the job.
func (w *World) Tuning() *tuning.Tuning { return &w.settings.tuning }

// usesRings tells whether letters may go by rings.
func (s *Settings) usesRings(virtual bool) bool {
	switch s.tuning.Rings {
	case tuning.RingsAlways:
		return true
	case tuning.RingsNever:
		return false
	}
	return !virtual
}

// keptBytes and keptRegions are how much of the program's memory a rank keeps registered at most for its card, while no
// operation uses it.
const (
	keptBytes   = 1 << 30
	keptRegions = 1 << 12
)

// WithAddress sets the address at which this rank listens for ranks on other hosts.
func WithAddress(text string) Option { return func(s *Settings) { s.address = text } }

// WithKey sets the key by which ranks recognize each other over a network.
func WithKey(key []byte) Option {
	// A program may overwrite its own, while a Listener still needs it.
	key = bytes.Clone(key)
	return func(s *Settings) { s.key = key }
}

// WithoutKey lets Listen and Dial work without a key, at a loopback address.
func WithoutKey() Option { return func(s *Settings) { s.keyless = true } }

// WithTLS encrypts everything between ranks that share no memory.
func WithTLS(config *tls.Config) Option {
	return func(s *Settings) { s.tls, s.noTLS = config, config == nil }
}

const defaultLongestSleep = 200 * time.Millisecond

// DefaultSilence is after how long without a word a rank is taken for dead.
const DefaultSilence = 10 * time.Second

// WithPeerTimeout sets how long a rank on another host may be silent before it counts as failed.
func WithPeerTimeout(d time.Duration) Option { return func(s *Settings) { s.silence = d } }

func newSettings(options []Option) (Settings, error) {
	stall, stallErr := stallFromEnvironment()
	s := Settings{
		stall:  stall,
		logger: slog.New(warnings{slog.Default().Handler()}), cores: runtime.NumCPU(), patience: DefaultPatience, silence: DefaultSilence, longestSleep: defaultLongestSleep,
		kept:    regcache.Limits{Bytes: keptBytes, Regions: keptRegions},
		address: os.Getenv("RMA_ADDRESS"),
		device:  os.Getenv(deviceVariable), host: os.Getenv("RMA_HOST"), trace: os.Getenv("RMA_TRACE"), statsTo: os.Getenv("RMA_STATS"), debug: !slices.Contains([]string{"", "0"}, os.Getenv("RMA_DEBUG")),
	}
	for _, option := range options {
		if option != nil {
			option(&s)
		}
	}
	if err := checkSpelling(os.Environ()); err != nil {
		return s, err
	}
	if s.device != "" && !slices.Contains(deviceNames, s.device) {
		return s, fmt.Errorf("%w: device %q (RMA_DEVICE, or WithDevice), allowed are %s, or none for the best", ErrEnvironment, s.device, strings.Join(deviceNames, ", "))
	}
	if stallErr != nil {
		return s, stallErr
	}
	if s.stall < 0 {
		return s, fmt.Errorf("%w: stall %v must not be less than 0", ErrArgument, s.stall)
	}
	if s.patience <= 0 || s.silence <= 0 {
		return s, fmt.Errorf("%w: start timeout %v (WithStartTimeout) and peer timeout %v (WithPeerTimeout) must be more than 0", ErrArgument, s.patience, s.silence)
	}
	if s.tuning.Algorithm >= tuning.Algorithms {
		return s, fmt.Errorf("%w: algorithm %d of collectives, %s", ErrArgument, s.tuning.Algorithm, errtext.Allowed(int(tuning.Algorithms)-1))
	}
	if err := checkKey(s.key); err != nil {
		return s, err
	}
	if s.noTLS {
		return s, fmt.Errorf("%w: nil configuration (WithTLS); without WithTLS nothing is encrypted", ErrArgument)
	}
	return s, s.findAddress()
}

// checkKey checks a key of WithKey. None at all is legal; an empty one would let every process connect.
func checkKey(key []byte) error {
	if n := len(key); key != nil && (n < proof.MinKey || n > proof.MaxKey) {
		return fmt.Errorf("%w: a key of %s (WithKey), allowed are %d to %d", ErrArgument, errtext.Count(n, "byte"), proof.MinKey, proof.MaxKey)
	}
	return nil
}

// findAddress finds the address that the user wants. A wrong one is an error also where
// nothing is going to listen: that all ranks happen to be on one host must not hide it
// until they are not.
func (s *Settings) findAddress() error {
	if s.address == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.patience)
	defer cancel()
	for one := range strings.SplitSeq(s.address, ",") {
		found, err := address.Named(ctx, one)
		if err != nil {
			return fmt.Errorf("%w: RMA_ADDRESS (or WithAddress): %w", ErrEnvironment, err)
		}
		s.listen = append(s.listen, found)
	}
	return nil
}
