package job_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/world"
)

// newSizes checks that ranks with different sizes report that, whichever rank differs, and wait for no rank that is
// never started.
func newSizes(t *testing.T, program string) {
	for _, sizes := range [][]int{{3, 4, 3}, {4, 3, 3}, {3, 2, 3}} {
		t.Run(fmt.Sprint(sizes), func(t *testing.T) {
			directory := t.TempDir()
			var ranks []*newRank
			for rank, size := range sizes {
				ranks = append(ranks, startNew(t, program, directory, rank, size))
			}
			for rank, r := range ranks {
				require.Error(t, r.Wait(), "rank %d", rank)
				require.Regexp(t, `rank \d has size \d, this rank has \d`, r.errout.String())
				require.NotContains(t, r.errout.String(), ": it waits for rank")
			}
		})
	}
}

// joinAll has all ranks of a job join, and gives their errors.
func joinAll(size int, exchange func(rank int) world.Exchange, options func(rank int) []world.Option) []error {
	errs := make([]error, size)
	var ranks sync.WaitGroup
	for rank := range errs {
		ranks.Go(func() { _, errs[rank] = world.New(context.Background(), rank, size, exchange(rank), options(rank)...) })
	}
	ranks.Wait()
	return errs
}

// A rank with a wrong setting of its own has the others hear of it through the exchange.
func TestNewSettingDeclined(t *testing.T) {
	environment(t, nil)
	errs := joinAll(3, localExchange(3), func(rank int) []world.Option {
		if rank == 1 {
			return []world.Option{world.WithAddress("240.0.0.1")}
		}
		return nil
	})
	for rank, err := range errs {
		require.ErrorContains(t, err, "world: New: ")
		require.ErrorContains(t, err, `RMA_ADDRESS (or WithAddress): address: not an address of this host: "240.0.0.1" is not here`)
		if rank == 1 {
			require.ErrorIs(t, err, world.ErrEnvironment)
			continue
		}
		var peer *world.PeerError
		require.ErrorAs(t, err, &peer)
		require.Equal(t, 1, peer.Rank)
	}
}

// A rank in whose place another process has put its text says so.
func TestNewTwice(t *testing.T) {
	environment(t, nil)
	for round := range 2 {
		called := 0
		_, err := world.New(t.Context(), 0, 1, func(_ context.Context, mine string) ([]string, error) {
			called++
			if called > round {
				mine = strings.Replace(mine, ";", ";another", 1)
			}
			return slices.Repeat([]string{mine}, 1), nil
		})
		require.ErrorIs(t, err, world.ErrMismatch)
		require.ErrorContains(t, err, "another process says that it is rank 0, too")
	}
}

// localExchange returns the exchange of each rank of a job whose ranks are goroutines.
func localExchange(size int) func(rank int) world.Exchange {
	of := job.NewLocalExchange(size)
	return func(rank int) world.Exchange { return world.Exchange(of(rank)) }
}
