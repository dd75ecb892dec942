package world

import (
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/onesided/rma/verbs"
)

// An Option changes how a job is made or joined.
type Option func(*settings)

type settings struct {
	logger   *slog.Logger
	patience time.Duration
	// device is the only one to use, empty for the best.
	device string
	host   string
	key    []byte
	// network opens the device that reaches every rank, nil for the one over TCP.
	network func(rank int) (verbs.Device, error)
}

// WithLogger has the job report what is worth knowing. The default is silence,
// also for nil.
func WithLogger(logger *slog.Logger) Option {
	return func(s *settings) {
		if logger != nil {
			s.logger = logger
		}
	}
}

// WithDevice has all ranks reach each other over one device, "shm" or "tcp", instead
// of the best that each pair has. A device that cannot be had is an error. Without
// this option the environment variable RMA_DEVICE says so.
func WithDevice(name string) Option { return func(s *settings) { s.device = name } }

// WithNetwork has ranks that share no memory reach each other over the devices that
// open gives, one a rank, instead of TCP. The World closes them.
func WithNetwork(open func(rank int) (verbs.Device, error)) Option {
	return func(s *settings) { s.network = open }
}

// WithHost names the host that this rank is taken to be on: ranks on hosts of
// different names share no memory. Without this option the environment variable
// RMA_HOST says so.
func WithHost(name string) Option { return func(s *settings) { s.host = name } }

func newSettings(options []Option) (settings, error) {
	s := settings{
		logger: slog.New(slog.DiscardHandler), patience: DefaultPatience,
		device: os.Getenv("RMA_DEVICE"), host: os.Getenv("RMA_HOST"),
	}
	for _, option := range options {
		if option != nil {
			option(&s)
		}
	}
	if s.device != "" && !slices.Contains(cardNames[:], s.device) {
		return s, fmt.Errorf("%w: device %q (RMA_DEVICE), allowed are %q, or none for the best", ErrEnvironment, s.device, cardNames)
	}
	return s, nil
}
