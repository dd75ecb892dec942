package window_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// oneOfEach does every operation to the next rank.
func oneOfEach(s *script, win *window.Window[int64]) {
	next, was := (s.World.Rank()+1)%s.World.Size(), make([]int64, 2)
	s.OK(win.LockAll(s.Ctx))
	s.OK(win.Put([]int64{1, 2, 3}, next, 0))
	s.OK(win.Get(was, next, 4))
	s.OK(win.Accumulate(window.Sum, []int64{1}, next, 6))
	s.OK(win.GetAccumulate(window.Sum, []int64{1, 1}, was, next, 6))
	s.OK(win.FetchAndOp(window.Sum, 1, &was[0], next, 6))
	s.OK(win.CompareAndSwap(0, 1, &was[1], next, 7))
	s.OK(win.PutNotify([]int64{9}, next, 9, 2))
	s.OK(win.Put(nil, next, 0))
	s.Check(win.Put([]int64{1}, next, 1000) != nil, "a put behind the end")
	s.OK(win.FlushAll(s.Ctx))
	s.OK(win.UnlockAll(s.Ctx))
	s.OK(win.WaitNotify(s.Ctx, 2, 1))
}

// eachOnce are counts of oneOfEach.
var eachOnce = window.Counts{Puts: 2, Gets: 1, Accumulates: 1, Fetches: 2, Swaps: 1, Notifications: 1}

func total(s window.Stats) window.Counts {
	var all window.Counts
	for _, c := range []window.Counts{s.Mapped, s.Direct, s.Packed} {
		all.Puts += c.Puts
		all.Gets += c.Gets
		all.Accumulates += c.Accumulates
		all.Fetches += c.Fetches
		all.Swaps += c.Swaps
		all.Notifications += c.Notifications
	}
	return all
}

// What a window counts is what was done to it, whatever way it went.
var countedAll = jobtest.RegisterWith("counted by kind", func() ([]world.Option, error) { return []world.Option{world.WithStats()}, nil }, scripted(func(s *script) {
	win := allocate[int64](s, 10)
	oneOfEach(s, win)
	stats := win.Stats()
	next := (s.World.Rank() + 1) % s.World.Size()
	if s.World.Mapped(next) && !job.Of(s.World).Counts() {
		s.Check(total(stats) == window.Counts{}, "counted without being asked are %+v", stats)
		s.OK(win.Close())
		return
	}
	s.Check(total(stats) == eachOnce, "counted are %+v", stats)
	if s.World.Mapped(next) {
		s.Check(stats.Mapped.Bytes == 8*(3+2+1+2+1+1+1), "bytes are %+v", stats)
	} else {
		s.Check(stats.Mapped == window.Counts{}, "counted as mapped are %+v", stats)
		s.Check(stats.Direct.Bytes+stats.Packed.Bytes == 8*(3+2+1+2+1+1+1), "bytes are %+v", stats)
		s.Check(stats.Packets > 0 && s.World.Stats().Messages > 0, "no messages: %+v, %+v", stats, s.World.Stats())
	}
	s.OK(win.Close())
	s.Check(total(win.Stats()) == eachOnce, "counted after Close are %+v", win.Stats())
}))

func TestStats(t *testing.T) {
	jobtest.InTurns(t, 0, countedAll, 1, 3)
}

// A hook hears of what was issued, in order, and of calls.
func TestHook(t *testing.T) {
	var heard []world.Event
	hook := world.WithHook(func(e *world.Event) { heard = append(heard, *e) })
	require.NoError(t, world.Run(t.Context(), 1, scripted(func(s *script) {
		win := allocate[int64](s, 10)
		heard = nil
		oneOfEach(s, win)
		var calls, operations []string
		for _, e := range heard {
			s.Check(e.Begun <= e.Ended, "%+v", e)
			if e.Operation {
				s.Check(e.Mapped && e.Target == 0 && e.Bytes == 8*e.Count, "%+v", e)
				operations = append(operations, e.Call)
			} else {
				calls = append(calls, e.Call)
			}
		}
		require.Equal(t, []string{"Put", "Get", "Accumulate", "GetAccumulate", "FetchAndOp", "CompareAndSwap", "PutNotify"}, operations)
		require.Contains(t, calls, "FlushAll")
		s.OK(win.Close())
	}), hook))
}

// Each rank adds its table to the file that RMA_STATS names.
func TestTable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stats")
	t.Setenv("RMA_STATS", file)
	require.NoError(t, world.Run(t.Context(), 2, scripted(func(s *script) {
		win := allocate[int64](s, 10)
		oneOfEach(s, win)
		s.OK(win.Close())
	})))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	for _, line := range []string{`rank 0 of 2, 1 by shm, mapped`, `rank 1 of 2, 1 by shm, mapped`, `window 2 +puts, mapped +2 `, `window 2 +operations, mapped +8 +88 B`, `job +collective calls +[1-9]`} {
		require.Regexp(t, `(?m)^ *`+line, string(text))
	}
	t.Setenv("RMA_STATS", t.TempDir())
	require.ErrorIs(t, world.Run(t.Context(), 1, scripted(func(*script) {})), world.ErrEnvironment)
}
