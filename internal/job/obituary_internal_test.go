package job

import (
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/verbs"
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
			worlds[rank], errs[rank] = New(t.Context(), rank, len(hosts), exchange, append(slices.Clone(options), func(s *Settings) { s.host = hosts[rank] })...)
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

// A rank sets no flag for the failure of a rank that both it and the reader map: each finds that end itself. It sets no
// flag in the block of a rank that has failed.
func TestNoObituary(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("skipped: ranks of several devices share memory on Linux only")
	}
	worlds := meetApart(t, "here", "here", "here", "there")
	worlds[0].roster.fail(2, errors.New("this test says so"))
	require.Empty(t, worlds[0].tellable(2))
	require.Equal(t, []int{1}, worlds[0].tellable(3))
	require.Equal(t, []int{0, 2}, worlds[1].tellable(3))
	for _, w := range worlds {
		require.NoError(t, w.depart())
	}
}

// A rank that finds itself recorded as failed in another's block sets no flags there. It may have been stopped, and its
// peers have then closed their connections to it: it would take them for failed.
func TestFailedRankSetsNoFlags(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("skipped: ranks of several devices share memory on Linux only")
	}
	worlds := meetApart(t, "here", "here", "here", "there")
	worlds[0].roster.fail(1, errBoom)
	// Rank 2, which rank 1 tells, would tell rank 0 in its turn.
	worlds[0].roster.fail(2, errBoom)
	require.Equal(t, []int{0, 2}, worlds[1].tellable(3))
	worlds[1].roster.fail(3, verbs.ErrPeerGone)
	// Rank 1 handles rank 0 before rank 2.
	for worlds[2].Failure(3) == nil {
		worlds[2].Poll()
		runtime.Gosched()
	}
	worlds[0].Poll()
	require.NoError(t, worlds[0].Failure(3))
	require.ErrorIs(t, worlds[0].Failure(1), errBoom)
	for _, w := range worlds {
		require.NoError(t, w.depart())
	}
}

// Every bit of the obituaries is of a rank of its own, and each is read once.
func TestObituaryOfEach(t *testing.T) {
	const size = 130
	w := &World{rank: 7, size: size, roster: newRoster(size), obituaries: obituariesOver(make([]byte, blockBytes+8*obituaryWords(size)), size)}
	for count, rank := range []int{0, 63, 64, 7, 129} {
		flagOf(w.obituaries, rank).set()
		w.readObituaries()
		require.NoError(t, w.Failure(rank), "before the count was raised")
		w.obituaries[0].Add(1)
		w.readObituaries()
		require.Equal(t, rank != w.rank, w.Failure(rank) != nil, "rank %d: what a rank hears of itself it does not believe", rank)
		require.EqualValues(t, count+1, w.obituariesRead)
	}
	require.EqualValues(t, 4, w.FailureCount())
}

// Rank 0 ends because rank 2 has failed. Rank 1 has heard nothing of that when it finds rank 0 gone, and names rank 2. It gives the
// reason that rank 2 has written for rank 0, if there is one.
func TestGoneAfterAnother(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("skipped: ranks of several devices share memory on Linux only")
	}
	for reason, shown := range map[string]string{"": unexplained, "boom\nbang": "boom"} {
		worlds := meetApart(t, "here", "here", "here")
		_, err := worlds[1].Neighbor(0)
		require.NoError(t, err)
		if reason != "" {
			worlds[2].writeReason(worlds[0].block, reason)
		}
		worlds[0].roster.fail(2, errors.New("this test says so"))
		require.NoError(t, worlds[0].depart())
		for worlds[1].Failure(0) == nil {
			runtime.Gosched()
		}
		first, err := worlds[1].FirstFailure()
		require.Equal(t, 2, first)
		require.EqualError(t, err, "world: rank 2 has failed: "+shown+" (told by rank 0)")
		require.ErrorContains(t, worlds[1].Failure(0), ", after rank 2 had failed: ")
		for _, w := range worlds[1:] {
			require.NoError(t, w.depart())
		}
	}
}

// Along a chain of ranks that end, each names the rank at its beginning. What a rank finds after its own failure is no part of one.
func TestGoneInAChain(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("skipped: ranks of several devices share memory on Linux only")
	}
	worlds := meetApart(t, "here", "here", "here", "here")
	for rank, met := range map[int]int{0: 1, 2: 0, 3: 2} {
		_, err := worlds[rank].Neighbor(met)
		require.NoError(t, err)
	}
	var noted uint64
	worlds[1].OnFailureAtOnce(func(int) { noted = firstOf(worlds[1].obituaries).Load() })
	worlds[1].roster.fail(3, errors.New("this test says so"))
	require.EqualValues(t, 3+1, noted, "before any call of the rank knows of the failure")
	worlds[0].failed(1, verbs.ErrPeerGone)
	worlds[2].failed(0, verbs.ErrPeerGone)
	for _, w := range worlds[:3] {
		first, err := w.FirstFailure()
		require.Equal(t, 3, first, "rank %d: %v", w.rank, err)
	}
	// A rank does not believe that it has failed itself.
	worlds[3].failed(2, verbs.ErrPeerGone)
	require.EqualValues(t, 1, worlds[3].FailureCount())

	others := meetApart(t, "here", "here", "here")
	_, err := others[1].Neighbor(0)
	require.NoError(t, err)
	others[0].failLast(errBoom)
	others[0].roster.fail(2, verbs.ErrPeerGone)
	others[1].failed(0, verbs.ErrPeerGone)
	require.EqualValues(t, 1, others[1].FailureCount())
	for _, w := range append(worlds, others...) {
		require.NoError(t, w.depart())
	}
}

// It makes no difference if a collective finds the rank gone first. A rank that has broken a rule is alive: nothing has failed before it.
func TestGoneInACollective(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("skipped: ranks of several devices share memory on Linux only")
	}
	for want, found := range map[string]error{
		"rank 2 has failed: " + unexplained + " (told by rank 1)": &linkageError{1, verbs.ErrPeerGone},
		"rank 1 has failed: " + ErrMessage.Error():                &boxError{1, ErrMessage},
	} {
		worlds := meetApart(t, "here", "here", "here")
		_, err := worlds[0].Neighbor(1)
		require.NoError(t, err)
		worlds[1].roster.fail(2, errors.New("this test says so"))
		err = worlds[0].post.failed("Barrier", 1, found)
		require.EqualError(t, err, "world: Barrier: "+want)
		for _, w := range worlds {
			require.NoError(t, w.depart())
		}
	}
}

// A rank takes from the block of one that is gone, or from its own, only ranks of the job other than both.
func TestCausesOfAnEnd(t *testing.T) {
	const size, gone, me, other = 70, 3, 4, 65
	for _, c := range []struct {
		first uint64
		told  int
		want  int
	}{
		{0, -1, gone}, {gone + 1, -1, gone}, {me + 1, -1, gone}, {size + 1, -1, gone}, {size + 2, -1, gone},
		{1 << 63, -1, gone}, {math.MaxUint64, -1, gone}, {1 << 32, -1, gone}, {0, me, gone},
		{1, -1, 0}, {other + 1, -1, other}, {size, -1, size - 1}, {0, other, other}, {0, 0, 0},
	} {
		w, flags := flagged(me, size), flagged(gone, size).obituaries
		w.root, w.flags = w, make([]atomic.Pointer[[]atomic.Uint64], size)
		w.flags[gone].Store(&flags)
		firstOf(flags).Store(c.first)
		if c.told >= 0 {
			flagOf(w.obituaries, c.told).set()
		}
		w.failed(gone, verbs.ErrPeerGone)
		first, err := w.FirstFailure()
		require.Equal(t, c.want, first, "%+v: %v", c, err)
		require.ErrorIs(t, w.Failure(gone), verbs.ErrPeerGone)
		want := uint32(1)
		if c.want != gone {
			want = 2
		}
		require.Equal(t, want, w.FailureCount(), "%+v", c)
	}
}
