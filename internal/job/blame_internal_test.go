package job

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/bootstrap/pmi"
)

// blamed is what a launcher is told.
type blamed struct {
	rank int
	left bool
}

// A launched is a launcher that keeps what it is told.
type launched struct {
	mu   sync.Mutex
	told []blamed
}

func (l *launched) tell(rank int, left bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told = append(l.told, blamed{rank, left})
}

func (l *launched) all() []blamed {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.told
}

// A rank blames the first rank that has failed, even if it has blamed one that had left, and even if the failure came before the
// launcher could be told. A rank that has failed itself, or that closes its World, blames none.
func TestWhomARankBlames(t *testing.T) {
	killed := errors.New("killed")
	for name, c := range map[string]struct {
		happens func(w *World)
		want    []blamed
	}{
		"left, failed":     {func(w *World) { _, _ = w.LeftBy("Fence", 1), w.LeftBy("Fence", 2); w.roster.fail(3, killed) }, []blamed{{1, true}, {3, false}}},
		"failed, left":     {func(w *World) { w.roster.fail(3, killed); _ = w.LeftBy("Fence", 1); w.roster.fail(2, killed) }, []blamed{{3, false}}},
		"failed by itself": {func(w *World) { w.roster.fail(0, killed); w.roster.fail(3, killed) }, nil},
		"closes":           {func(w *World) { w.closed.Store(true); _ = w.LeftBy("Close", 1); w.roster.fail(3, killed) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			worlds := meetWith(t, apart(), "one", "two", "three", "four")
			var launcher, late launched
			worlds[0].blameBy(launcher.tell)
			c.happens(worlds[0])
			require.Equal(t, c.want, launcher.all())
			worlds[1].roster.fail(2, killed)
			worlds[1].blameBy(late.tell)
			require.Equal(t, []blamed{{2, false}}, late.all())
			for _, w := range worlds {
				require.NoError(t, w.depart())
			}
		})
	}
}

// A rank that closes a team does not blame the members that have left.
func TestClosedTeamBlamesNone(t *testing.T) {
	require.NoError(t, Run(t.Context(), 2, func(ctx context.Context, w *World) error {
		var launcher launched
		if w.rank == 0 {
			w.blameBy(launcher.tell)
		}
		team, err := w.Split(ctx, 0, w.rank)
		if err != nil {
			return err
		}
		if err := team.Close(); err != nil {
			return err
		}
		assert.Error(t, team.LeftBy("Close", 1-w.rank))
		assert.Empty(t, launcher.all())
		return w.Barrier(ctx)
	}, apart()...))
}

// A rank that goes on by Shrink blames the earlier rank no more. It blames the ranks that fail in its new World, by their numbers in
// the job.
func TestShrinkTakesBlameBack(t *testing.T) {
	var launchers [3]launched
	// A rank ends when the others have come out of the Barrier before: the failure would end that, too.
	var met, metAgain sync.WaitGroup
	met.Add(2)
	metAgain.Add(1)
	doneAgain := sync.OnceFunc(metAgain.Done)
	err := Run(t.Context(), 3, func(ctx context.Context, w *World) error {
		w.blameBy(launchers[w.rank].tell)
		if w.rank == 0 {
			defer doneAgain()
		}
		err := w.Barrier(ctx)
		if w.rank == 1 {
			met.Wait()
			return errors.Join(err, errors.New("rank 1 ends"))
		}
		met.Done()
		if err != nil {
			return err
		}
		assert.Error(t, w.Barrier(ctx))
		small, err := w.Shrink(ctx)
		if err != nil {
			return err
		}
		err = small.Barrier(ctx)
		if w.rank == 2 {
			metAgain.Wait()
			return errors.Join(err, errors.New("rank 2 ends"))
		}
		doneAgain()
		if err != nil {
			return err
		}
		assert.Error(t, small.Barrier(ctx))
		return nil
	}, apart()...)
	require.ErrorContains(t, err, "rank 2 ends")
	require.Empty(t, launchers[1].all())
	require.Equal(t, []blamed{{1, false}, {pmi.NoRank, false}, {2, false}}, launchers[0].all())
	require.Equal(t, []blamed{{1, false}, {pmi.NoRank, false}}, launchers[2].all())
}
