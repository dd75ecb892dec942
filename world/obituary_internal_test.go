package world

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// meetApart makes the Worlds of ranks that know of failures by themselves, each on the
// host that is named.
func meetApart(t *testing.T, hosts ...string) []*World {
	t.Helper()
	return meetWith(t, []Option{WithDevice("")}, hosts...)
}

// meetWith is meetApart with options.
func meetWith(t *testing.T, options []Option, hosts ...string) []*World {
	t.Helper()
	worlds, errs := make([]*World, len(hosts)), make([]error, len(hosts))
	// The ranks exchange twice.
	var rounds [2]struct {
		texts []string
		told  sync.WaitGroup
	}
	for i := range rounds {
		rounds[i].texts = make([]string, len(hosts))
		rounds[i].told.Add(len(hosts))
	}
	var joined sync.WaitGroup
	for rank := range hosts {
		joined.Go(func() {
			next := 0
			exchange := func(_ context.Context, mine string) ([]string, error) {
				round := &rounds[next]
				next++
				round.texts[rank] = mine
				round.told.Done()
				round.told.Wait()
				return round.texts, nil
			}
			worlds[rank], errs[rank] = New(t.Context(), rank, len(hosts), exchange, append(slices.Clone(options), WithHost(hosts[rank]))...)
		})
	}
	joined.Wait()
	require.NoError(t, errors.Join(errs...))
	return worlds
}

// A rank that has a link with none hears of the failure of one on another host from
// those on its own.
func TestObituary(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("skipped: ranks of several devices share memory on Linux only")
	}
	worlds := meetApart(t, "here", "here", "there")
	require.True(t, worlds[0].Mapped(1))
	require.False(t, worlds[0].Mapped(2))
	worlds[0].roster.fail(2, errors.New("this test says so"))
	for worlds[1].Failure(2) == nil {
		worlds[1].Poll()
		runtime.Gosched()
	}
	require.ErrorIs(t, worlds[1].Failure(2), errObituary)
	require.NoError(t, worlds[1].Failure(0))
	for _, w := range worlds {
		require.NoError(t, w.depart())
	}
}

// Those that both ranks map are told of by their end itself: nobody writes to others of
// it. And nobody writes to one that has failed.
func TestNoObituary(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("skipped: ranks of several devices share memory on Linux only")
	}
	worlds := meetApart(t, "here", "here", "here", "there")
	worlds[0].roster.fail(2, errors.New("this test says so"))
	worlds[0].tellHere(new(bulletin), 2)
	worlds[0].tellHere(new(bulletin), 3)
	for rank, want := range []uint64{0, 1, 0, 0} {
		require.Equal(t, want, worlds[rank].obituaries[0].Load(), "rank %d", rank)
	}
	for _, w := range worlds {
		require.NoError(t, w.depart())
	}
}

// Every bit of the obituaries is of a rank of its own, and each is read once.
func TestObituaryOfEach(t *testing.T) {
	const size = 130
	w := &World{rank: 7, size: size, roster: newRoster(size), obituaries: obituariesOver(make([]byte, blockBytes+8*obituaryWords(size)), size)}
	for count, rank := range []int{0, 63, 64, 7, 129} {
		w.obituaries[1+rank/64].Or(1 << (rank % 64))
		w.readObituaries()
		require.NoError(t, w.Failure(rank), "before the count was raised")
		w.obituaries[0].Add(1)
		w.readObituaries()
		require.Equal(t, rank != w.rank, w.Failure(rank) != nil, "rank %d: what a rank hears of itself it does not believe", rank)
		require.EqualValues(t, count+1, w.obituariesRead)
	}
	require.EqualValues(t, 4, w.Failures())
}
