package job

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/bootstrap/root"
	"github.com/onesided/rma/internal/launchtest"
	"github.com/onesided/rma/internal/proof"
	"github.com/onesided/rma/internal/testsize"
)

// Ranks that come for the next job at a root while another has not left the last wait for it. In each job it is
// another, which leaves when all but rank 0 have called the root again.
func TestNextJobAtTheRoot(t *testing.T) {
	const size = 4
	address, key := launchtest.RootAddress(), proof.NewKey()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	rounds := testsize.N(6)
	rank := func(rank int) error {
		for round := range rounds {
			s, err := newSettings([]Option{WithDevice("")})
			if err != nil {
				return err
			}
			w, err := meetAtRoot(ctx, &root.Settings{Root: address, Rank: rank, Size: size, Key: key}, s)
			if err != nil {
				return err
			}
			if finalize := w.finalize; rank == 1+round%(size-1) && round < rounds-1 {
				w.finalize = func(closing context.Context) error {
					return errors.Join(await.UntilParked(ctx, "root.awaitEnd", size-2), finalize(closing))
				}
			}
			if err := w.Close(); err != nil {
				return err
			}
		}
		return nil
	}
	errs := make([]error, size)
	var ranks sync.WaitGroup
	for i := range size {
		ranks.Go(func() {
			if errs[i] = rank(i); errs[i] != nil {
				cancel(errs[i])
			}
		})
	}
	ranks.Wait()
	require.NoError(t, errors.Join(errs...))
}
