package job

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"math"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/onesided/rma/internal/bootstrap/address"
	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/internal/proof"
	"github.com/onesided/rma/regcache"
	"github.com/onesided/rma/scheduler/transfer"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/ibv"
	"github.com/onesided/rma/verbs/rails"
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
	// rdma changes how an RDMA card is opened, if not nil.
	rdma func(*ibv.Options)
	// trace is the file for what the rank does over the network, empty for none.
	trace string
	// hook is told of what the rank does, if not nil. stats has windows count, statsTo where a table goes, if not
	// empty.
	hook  func(*Event)
	stats bool
	// debug has windows look for misuse.
	debug   bool
	statsTo string
	// transfers are how what a card does not know may get to it, kept bounds what it is told
	// of and keeps.
	transfers transfer.Set
	kept      regcache.Limits
	// unshared tells that no memory is shared with others, whatever host they are on.
	unshared bool
	// smallPages tells that memory is shared in pages of 4 KiB.
	smallPages bool
	// port is where the devices of sessions are reached, nil for ports of their own; dialed is where this
	// rank has reached rank 0, empty but in sessions.
	port   *tcp.Port
	dialed string
	// session is that of the World, nil if it has none. yield is that of the endpoint, nil for that of goroutines.
	session *Session
	yield   func()
	// rings tells whether letters may go by rings, nil if nothing does.
	rings *bool
	// burst is how many requests a link collects; inline how many bytes go along with one;
	// without are optimizations to leave out.
	burst   int
	inline  int
	eager   bool
	without tcp.Optimization
	// longestSleep bounds what is lost if the rank that should wake this one was cancelled or died before it did. Four things
	// wake nobody, and are found only after a sleep:
	//   - a rank is silent with which the root of a barrier has no connection: the root connects to ask only when it has
	//     waited long;
	//   - the limit of a within is over;
	//   - a rank has called Shrink that a rank waits for in a collective which shares no memory with it, or is the root of a barrier;
	//   - a rank has left for which a window's lock or notification waits in shared memory.
	// Only tests set another than defaultLongestSleep: longer than they last, so that who is not woken hangs, or short, so
	// that a wait looks soon.
	longestSleep time.Duration
	ways
	// rails is how many cards a rank has that is simulated; striping is rails.Striping if it is to be
	// left out.
	rails    int
	striping rails.Optimization
}

// ways are those of collectives, which all ranks have to go together.
type ways struct {
	algorithm                  Algorithm
	unpiped, unnoted, unstaged bool
}

func (s ways) String() string {
	text := fmt.Sprintf("WithAlgorithm(%d)", s.algorithm)
	for _, option := range []struct {
		without bool
		name    string
	}{{s.unpiped, "pipes"}, {s.unnoted, "notes"}, {s.unstaged, "staging"}} {
		if option.without {
			text += ", no " + option.name
		}
	}
	return text
}

// WithLogger is that of package world.
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

// WithDevice is that of package world.
func WithDevice(name string) Option { return func(s *Settings) { s.device = name } }

// WithNetwork is that of package world.
func WithNetwork(open func(rank int) (verbs.Device, error)) Option {
	return func(s *Settings) { s.network = open }
}

// WithRDMA has change say how an RDMA card is opened, beside what the environment says
// (RMA_IBV_DEVICE, RMA_IBV_GID): memory that is paged on demand instead of pinned, the MTU, after
// how long without an answer a packet is sent again. The fields from Listen on are the World's.
func WithRDMA(change func(*ibv.Options)) Option { return func(s *Settings) { s.rdma = change } }

// rdmaOptions are those of an RDMA card, but for what is the World's.
func (s *Settings) rdmaOptions() ibv.Options {
	o := ibv.FromEnvironment()
	if s.rdma != nil {
		s.rdma(&o)
	}
	return o
}

// WithRings says whether short messages are written into rings in the memory of their receivers, which look
// there (package verbs/channel), where a card suits that. Without it they are, but not in virtual time, where
// to look takes time.
func WithRings(on bool) Option { return func(s *Settings) { s.rings = &on } }

// WithPipes says whether the messages of collectives between ranks that map each other's memory go by pipes
// there (package internal/pipe), as they do without it; else they go over links, as between others. All ranks
// pass the same, else it is an ErrMismatch to make the World. It is for measuring.
func WithPipes(on bool) Option { return func(s *Settings) { s.unpiped = !on } }

// WithNotes says whether messages of collectives of up to 48 bytes between ranks that map each other's memory, of up
// to 64, go by notes: a line each, in which the receiver finds it. They do without it; else they go as longer ones do.
// All ranks pass the same, as with WithPipes. It is for measuring.
func WithNotes(on bool) Option { return func(s *Settings) { s.unnoted = !on } }

// WithStaging says whether long messages of collectives go through memory that is made for them, as they do without
// it: between ranks that map each other's memory that of the sender (staging), between others that of the receiver,
// where the sender writes (landing). Each is of 1 MiB a rank and World or team at most, with 64 bytes for every 32 KiB
// of staging, and made when it is first needed. Else they go as short ones do. All ranks pass the same, as with
// WithPipes. It is for measuring.
func WithStaging(on bool) Option { return func(s *Settings) { s.unstaged = !on } }

// WithHugePages says whether memory that processes of a machine share, of 2 MiB and more, is in pages of 2 MiB, where
// Linux (6.1 and later) has some left: what is read and written here and there needs a processor's table of pages less.
// It is without this option. It is for measuring.
func WithHugePages(on bool) Option { return func(s *Settings) { s.smallPages = !on } }

// usesRings tells whether letters may go by rings.
func (s *Settings) usesRings(virtual bool) bool {
	if s.rings != nil {
		return *s.rings
	}
	return !virtual
}

// WithBurst has a [Link] collect that many reads, writes and messages before it posts them,
// if they are not long and nobody waits for them sooner: 1 posts each at once, a message in
// a letter of its own. How long operations are deferred before a link is given them, and
// which of them become one message, is up to who uses it. It is for measuring; without it
// they are 32.
func WithBurst(requests int) Option {
	return func(s *Settings) { s.burst = max(requests, 1) }
}

// WithInline has at most so many bytes that a [Link] writes or sends go to the card with the
// request itself, which saves it a fetch and their registration. It is for measuring; without it
// they are as many as the card takes.
func WithInline(most int) Option {
	return func(s *Settings) { s.inline = max(most, 0) }
}

// WithStandBack says whether what makes progress while the program computes stands back where the program calls
// often, and no other rank waits for it meanwhile: by a few milliseconds at most. Where GOMAXPROCS is 1 it does so also if
// others wait. It does without it. It is for measuring.
func WithStandBack(on bool) Option { return func(s *Settings) { s.eager = !on } }

// WithTransfers has memory that a card does not know get to it only in some of the ways that there
// are: those that keep nothing, transfer.Copy, CopyPipeline, Superpipeline, Register and Pipeline, and
// those by which what is used frequently is registered and kept, transfer.Cache and CachingPipeline.
// Without the latter nothing is kept, and with them alone everything is, as far as it can be. What
// is none of the former is copied in the simplest way where nothing else is left. The default
// is all of them, of which the costs of the card and what is observed choose.
func WithTransfers(allowed transfer.Set) Option {
	return func(s *Settings) { s.transfers = allowed }
}

// DefaultKeptBytes and DefaultKeptRegions are how much of the program's memory a rank keeps registered
// at most for its card, while no operation uses it.
const (
	DefaultKeptBytes   = 1 << 30
	DefaultKeptRegions = 1 << 12
)

// WithKept sets how much of the program's memory, in bytes and in regions, a rank keeps registered
// at most for its card, while no operation uses it. 0 of either is none. Buffers are kept of sizes up
// to the largest power of 2 that is in the bytes.
func WithKept(bytes uint64, regions int) Option {
	return func(s *Settings) { s.kept = regcache.Limits{Bytes: bytes, Regions: max(regions, 0)} }
}

// WithoutOptimizations does without optimizations of TCP. It is for measuring what they
// bring.
func WithoutOptimizations(which tcp.Optimization) Option {
	return func(s *Settings) { s.without |= which }
}

// WithRails has each rank of Simulate have several cards, which long transfers take at once: see
// package rails. Real ranks have as many as WithAddress lists addresses, or RMA_IBV_DEVICE cards.
func WithRails(cards int) Option { return func(s *Settings) { s.rails = max(cards, 1) } }

// WithoutStriping has ranks with several cards use only the first. It is for measuring what the
// others bring.
func WithoutStriping() Option { return func(s *Settings) { s.striping = rails.Striping } }

// WithHost names the host that this rank is taken to be on: ranks on hosts of
// different names share no memory. Without this option the environment variable
// RMA_HOST says so.
func WithHost(name string) Option { return func(s *Settings) { s.host = name } }

// WithAddress is that of package world.
func WithAddress(text string) Option { return func(s *Settings) { s.address = text } }

// WithKey is that of package world.
func WithKey(key []byte) Option {
	// A program may overwrite its own, while a Listener still needs it.
	key = bytes.Clone(key)
	return func(s *Settings) { s.key = key }
}

// WithoutKey is that of package world.
func WithoutKey() Option { return func(s *Settings) { s.keyless = true } }

// WithTLS is that of package world.
func WithTLS(config *tls.Config) Option {
	return func(s *Settings) { s.tls, s.noTLS = config, config == nil }
}

const defaultLongestSleep = 200 * time.Millisecond

// DefaultSilence is after how long without a word a rank is taken for dead.
const DefaultSilence = 10 * time.Second

// WithPeerTimeout is that of package world.
func WithPeerTimeout(d time.Duration) Option { return func(s *Settings) { s.silence = d } }

func newSettings(options []Option) (Settings, error) {
	stall, stallErr := stallFromEnvironment()
	s := Settings{
		stall:  stall,
		logger: slog.New(warnings{slog.Default().Handler()}), cores: runtime.NumCPU(), patience: DefaultPatience, silence: DefaultSilence, rails: 1, burst: defaultBurst, inline: math.MaxInt, longestSleep: defaultLongestSleep,
		transfers: transfer.All, kept: regcache.Limits{Bytes: DefaultKeptBytes, Regions: DefaultKeptRegions},
		address: os.Getenv("RMA_ADDRESS"),
		device:  os.Getenv("RMA_DEVICE"), host: os.Getenv("RMA_HOST"), trace: os.Getenv("RMA_TRACE"), statsTo: os.Getenv("RMA_STATS"), debug: !slices.Contains([]string{"", "0"}, os.Getenv("RMA_DEBUG")),
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
