package job

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/onesided/rma/internal/bootstrap/pmi"
	"github.com/onesided/rma/internal/bootstrap/root"
	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/internal/proof"
)

// DefaultPatience is how long Init and New wait for the other ranks to start.
const DefaultPatience = 60 * time.Second

// WithStartTimeout sets how long Init, New and Dial wait for other ranks.
func WithStartTimeout(d time.Duration) Option { return func(s *Settings) { s.patience = d } }

// Init makes this process one rank of the job that the environment selects.
func Init(ctx context.Context, options ...Option) (w *World, err error) {
	if ctx == nil {
		return nil, nilArgument("Init", "context")
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("world: Init: %w", errtext.Ended(ctx))
	}
	if withinBody(ctx) {
		return nil, fmt.Errorf("world: Init: %w: this rank is one of Run, Main or Simulate; use the World that its body gets", ErrInitialized)
	}
	if !initialized.CompareAndSwap(nil, beingMade) {
		return nil, fmt.Errorf("world: Init: %w: the World of an earlier call is open, or being made; use that one, or close it first", ErrInitialized)
	}
	defer func() { initialized.Store(w) }()
	s, flaw := jobSettings(options)
	if flaw == nil {
		flaw = checkOneRank()
	}
	client, err := pmi.FromEnvironment()
	switch none := errors.Is(err, pmi.ErrNoManager); {
	case none && flaw == nil:
		return unmanaged(ctx, s)
	case none:
		return nil, errtext.Errorf("world: Init: %w", flaw)
	case errors.Is(err, pmi.ErrTaken):
		why := ""
		if notJoined {
			why = ", because an earlier Init failed"
		}
		return nil, errtext.Errorf("world: Init: this process can join no further job%s; start it again under the launcher: %w", why, err)
	case err != nil:
		return nil, errtext.Errorf("world: Init: %w: %w", ErrEnvironment, err)
	}
	if flaw != nil {
		err = errtext.Errorf("world: Init: %w", decline(ctx, managed(client), client.Rank(), s, flaw))
	} else {
		w, err = initialize(ctx, client, s)
	}
	if err != nil {
		notJoined = true
		at := client.Rank()
		if peer := (*PeerError)(nil); errors.As(err, &peer) {
			at = peer.Rank
		}
		// An error of NotJoined means that the launcher is gone.
		_ = client.NotJoined(at)
		return nil, err
	}
	go endWithManager(client, s.logger)
	return w, nil
}

// jobSettings are those of a rank of a job. The key is that of the file that RMA_KEY_FILE names, if no option gives one.
func jobSettings(options []Option) (Settings, error) {
	s, err := newSettings(options)
	path := os.Getenv("RMA_KEY_FILE")
	if err != nil || s.key != nil || path == "" {
		return s, err
	}
	if s.key, err = proof.ReadKeyFile(path); err != nil {
		return s, fmt.Errorf("%w: RMA_KEY_FILE: %w", ErrEnvironment, err)
	}
	return s, nil
}

// checkOneRank refuses the variables by which Main makes ranks: a process of Init is one rank, whatever they say.
func checkOneRank() error {
	for _, name := range []string{ranksVariable, simulateVariable} {
		if value := os.Getenv(name); value != "" {
			return fmt.Errorf("%w: %s=%q is for programs that call world.Main; this one calls world.Init, which makes one rank: unset the variable, and start the ranks by a launcher, or by a flag of the program", ErrEnvironment, name, value)
		}
	}
	return nil
}

// initialized is the World of Init that is open, and beingMade in place of one that will be.
var (
	initialized atomic.Pointer[World]
	beingMade   = new(World)
	// notJoined: an Init has failed that had taken the connection to the manager. It belongs to the Init that has set beingMade.
	notJoined bool
)

// unmanaged joins a job whose ranks rank 0 brings together, or is a world of one.
func unmanaged(ctx context.Context, s Settings) (*World, error) {
	found, err := root.FromEnvironment(s.key)
	if errors.Is(err, root.ErrNoRoot) {
		if err := alone(); err != nil {
			return nil, err
		}
		s.warnUnmanaged("Init", 1)
		worlds, err := localWorlds(ctx, 1, s)
		if err != nil {
			return nil, errtext.Errorf("world: Init: %w", err)
		}
		return worlds[0], nil
	}
	if err != nil {
		return nil, errtext.Errorf("world: Init: %w: %w", ErrEnvironment, err)
	}
	return meetAtRoot(ctx, found, s)
}

// lastJob is the job that this process has joined last at a root.
var lastJob atomic.Uint64

// meetAtRoot joins a job whose ranks rank 0 brings together.
func meetAtRoot(ctx context.Context, found *root.Settings, s Settings) (*World, error) {
	s.key = found.Key
	s.tell(found)
	member, err := root.Join(ctx, found, s.patience)
	if err != nil {
		return nil, errtext.Errorf("world: Init: %w", err)
	}
	lastJob.Store(member.Job())
	w, err := initialize(ctx, member, s)
	if err != nil {
		// Others may still be asking rank 0 for what shows them why this is so. That
		// this fails as well tells nothing new.
		if e := member.Finalize(); e != nil {
			s.logger.Info("leaving the root of a job that was not joined", "rank", member.Rank(), "why", e)
		}
		return nil, err
	}
	return w, nil
}

// tell has the root follow the options of this World, look that all ranks have the same terms
// before any has opened a device, and not take an earlier job's root for it.
func (s *Settings) tell(r *root.Settings) {
	r.TLS, r.Silence, r.Logger, r.Terms = s.tls, s.silence, s.logger, s.terms(r.Size)
	r.After = lastJob.Load()
	if r.Notice = s.firstNotice(); r.Notice == 0 {
		r.Notice = -1
	}
}

// manager is what serves the exchange to this rank.
type manager interface {
	Rank() int
	Size() int
	Put(key, value string) error
	Get(key string) (string, error)
	Barrier(ctx context.Context) error
	FinalizeContext(ctx context.Context) error
}

// initialize joins the job of a manager, with which the connection stays open where
// that fails: Hydra kills everyone as soon as one hangs up, and nobody could say why.
func initialize(ctx context.Context, m manager, s Settings) (*World, error) {
	s.yield = yieldToProcesses
	w, err := join(ctx, m.Rank(), m.Size(), managed(m), s)
	if err != nil {
		return nil, errtext.Errorf("world: Init: %w", err)
	}
	w.finalize = m.FinalizeContext
	if d, ok := m.(interface{ Dismiss(rank int) }); ok {
		stop, end := w.OnFailure(func(e *PeerError) { d.Dismiss(e.Rank) }), w.end
		w.end = func() { stop(); end() }
	}
	if b, ok := m.(interface {
		Blame(rank int, left bool) error
	}); ok {
		// An error of Blame means that the launcher is gone, which endWithManager finds.
		w.blameBy(func(rank int, left bool) { _ = b.Blame(rank, left) })
	}
	return w, nil
}

// alone checks that nobody takes this process for a rank: a job of many that each
// believe to be alone would go wrong without a word.
func alone() error {
	for _, name := range []string{"PMI_RANK", "PMI_SIZE", "PMI_ID"} {
		if value := os.Getenv(name); value != "" {
			return fmt.Errorf("world: Init: %w: %s=%q without a manager; a launcher sets PMI_FD, PMI_RANK and PMI_SIZE, or PMI_PORT and PMI_ID, a process without one has none of them, and a process that a rank has started is no rank: remove them from its environment", ErrEnvironment, name, value)
		}
	}
	return nil
}

// managed is the exchange through a process manager's key-value space.
func managed(client manager) Exchange {
	round := 0
	return func(ctx context.Context, mine string) ([]string, error) {
		round++
		key := func(rank int) string { return fmt.Sprintf("rma-%d-%d", round, rank) }
		if err := client.Put(key(client.Rank()), mine); err != nil {
			return nil, err
		}
		if err := client.Barrier(ctx); err != nil {
			return nil, err
		}
		all := make([]string, client.Size())
		for rank := range all {
			var err error
			if all[rank], err = client.Get(key(rank)); err != nil {
				return nil, fmt.Errorf("rank %d: %w", rank, err)
			}
		}
		return all, nil
	}
}
