package world

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/onesided/rma/world/pmi"
)

// DefaultPatience is how long Init and New wait for the other ranks to start.
const DefaultPatience = 60 * time.Second

// WithPatience sets how long Init and New wait for the other ranks to start.
func WithPatience(d time.Duration) Option { return func(s *settings) { s.patience = d } }

// Init joins the job that a process manager has started this process for: rmarun,
// or another that serves PMI-1. A process that nobody has started so is a world of
// one.
func Init(ctx context.Context, options ...Option) (*World, error) {
	if ctx == nil {
		return nil, fmt.Errorf("world: Init: %w: nil context", ErrArgument)
	}
	s, err := newSettings(options)
	if err != nil {
		return nil, fmt.Errorf("world: Init: %w", err)
	}
	client, err := pmi.FromEnvironment()
	if errors.Is(err, pmi.ErrNoManager) {
		if err := alone(); err != nil {
			return nil, err
		}
		worlds, err := localWorlds(ctx, 1, s)
		if err != nil {
			return nil, err
		}
		return worlds[0], nil
	}
	if err != nil {
		return nil, fmt.Errorf("world: Init: %w: %w", ErrEnvironment, err)
	}
	w, err := join(ctx, client.Rank(), client.Size(), managed(client), newRoster(client.Size()), s)
	if err != nil {
		return nil, fmt.Errorf("world: Init: %w", errors.Join(err, client.Close()))
	}
	w.yield = yieldToProcesses
	w.finalize = client.Finalize
	return w, nil
}

// alone checks that nobody takes this process for a rank: a job of many that each
// believe to be alone would go wrong without a word.
func alone() error {
	for _, name := range []string{"PMI_RANK", "PMI_SIZE", "PMI_ID"} {
		if value := os.Getenv(name); value != "" {
			return fmt.Errorf("world: Init: %w: %s=%q without a manager; a launcher sets PMI_FD, PMI_RANK and PMI_SIZE, or PMI_PORT and PMI_ID, and a process without one none of them", ErrEnvironment, name, value)
		}
	}
	return nil
}

// managed is the exchange through a process manager's key-value space.
func managed(client *pmi.Client) Exchange {
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
