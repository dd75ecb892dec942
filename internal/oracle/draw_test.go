package oracle_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/oracle"
)

// TestDraw draws programs. Each must be legal, come back unchanged from its script, and be the same for the same seed.
// Together the programs have every call, legal and rejected.
func TestDraw(t *testing.T) {
	const programs = 300
	done, refused, modes, loose, hasty := map[string]int{}, map[string]int{}, map[string]int{}, 0, 0
	for seed := range uint64(programs) {
		p := oracle.Draw(seed, oracle.Limits{})
		require.NoError(t, p.Check(), "seed %d\n%s", seed, p)
		text := p.String()
		back, err := oracle.Parse(text)
		require.NoError(t, err, "seed %d\n%s", seed, text)
		require.Equal(t, text, back.String())
		require.Equal(t, text, p.Clone().String())
		require.Equal(t, text, oracle.Draw(seed, oracle.Limits{}).String())
		for i := range p.Phases {
			f := &p.Phases[i]
			for j := range f.Syncs {
				modes[f.Syncs[j].Mode.String()]++
			}
			if f.Loose {
				loose++
			}
			if f.Hasty {
				hasty++
			}
			for j := range f.Steps {
				if s := &f.Steps[j]; s.Refused {
					refused[s.Call.String()]++
				} else {
					done[s.Call.String()]++
				}
			}
		}
	}
	require.Len(t, modes, 5)
	require.Greater(t, loose, programs/4)
	require.Greater(t, hasty, programs/4)
	for call := oracle.Put; call <= oracle.View; call++ {
		name := call.String()
		if call < oracle.Fence {
			require.Greater(t, done[name], programs/20, name)
		}
		if call.Operates() || call >= oracle.Flush && call != oracle.Wait && call != oracle.Test {
			require.Greater(t, refused[name], programs/60, name)
		}
	}
}

// TestLimits draws programs within limits.
func TestLimits(t *testing.T) {
	for seed := range uint64(50) {
		l := oracle.Limits{Ranks: 1 + int(seed)%6, Windows: 2, Phases: 3, Places: 2, Elements: 40}
		p := oracle.Draw(seed, l)
		require.NoError(t, p.Check())
		require.Equal(t, l.Ranks, p.Ranks)
		require.LessOrEqual(t, len(p.Windows), l.Windows)
		require.LessOrEqual(t, len(p.Phases), l.Phases)
		for _, w := range p.Windows {
			require.GreaterOrEqual(t, w.Counts[0], l.Elements)
			require.Less(t, w.Counts[0], l.Elements+16)
		}
	}
}

// illegal has scripts that are not legal, and a part of the error.
var illegal = []struct{ script, says string }{
	{"ranks 0", "0 ranks"},
	{"ranks many", "line 1"},
	{"ranks 2\nwindow int64 counts=8", "2 counts"},
	{"ranks 1\nwindow float16 counts=8", "no element type"},
	{"ranks 1\nwindow int8 counts=8 gigantic", `"gigantic" is unknown`},
	{"0 put w0 int64", "no phase has begun"},
	{legal + "0 put w1 int64 on=0 n=1", "there are 1 windows"},
	{legal + "0 jump w0", "no call"},
	{legal + "sync w0 sometimes", "no mode"},
	{legal + "7 put w0 int64 on=0 n=1", "no such rank"},
	{legal + "0 put w0 int64 on=0 at=8 n=1", "reasons to refuse it are [out of the target's window]"},
	{legal + "0 refused put w0 int64 on=0 at=7 n=1", "reasons to refuse it are []"},
	{legal + "0 fence w0", "phases make"},
	{legal + "0 put w0 int64 on=0 n=2\n1 put w0 int64 on=0 at=1 n=2", "accesses that conflict"},
	{legal + "0 put w0 int64 on=0 n=2\n0 get w0 int64 on=0 n=2", "accesses that conflict"},
	{legal + "0 get w0 int64 on=0 n=2\n1 accumulate w0 int64 op=sum on=0 n=2", "accesses that conflict"},
	{legal + "0 accumulate w0 int64 op=sum on=0 n=2\n1 accumulate w0 int32 op=sum on=0 n=2", "two element types"},
	{legal + "0 rget w0 int64 on=0 n=2", "a number of its own"},
	{legal + "0 wait w0 request=3", "made the request"},
	{locked + "0 lock w0 on=0 shared", "ends it with a lock"},
	{locked + "0 lock w0 on=1 shared\n0 lock w0 on=0 shared\n0 unlock w0 on=0\n0 unlock w0 on=1", "order of windows and targets"},
	{locked + "0 put w0 int64 on=0 n=1", "no access epoch"},
	{locked + "0 lock w0 on=0 shared\n0 waitnotify w0\n0 unlock w0 on=0", "with a lock held"},
	{"ranks 1\nwindow int64 counts=1\nphase loose\nsync w0 lock\nphase\nsync w0 lock", "lets accesses meet"},
	{"ranks 1\nwindow int64 counts=1\nphase loose\nsync w0 lock", "the last phase is loose"},
	{"ranks 1\nwindow int64 counts=1\nphase\nsync w0 fence\nphase\nsync w0 lock", "an epoch of Fence is open"},
	{"ranks 1\nwindow int64 counts=1 sameop\nphase\nsync w0 fence nosucceed\n0 accumulate w0 int64 op=sum on=0 n=1\n0 accumulate w0 int64 op=max on=0 n=1", "the operation of the window is Sum"},
	{"ranks 2\nwindow int64 counts=1,1\nphase\nsync w0 start 0>5", "no group"},
}

const (
	legal  = "ranks 2\nwindow int64 counts=8,8 slots=1\nphase\nsync w0 fence nosucceed\n"
	locked = "ranks 2\nwindow int64 counts=8,8 slots=1\nphase\nsync w0 lock\n"
)

// TestParse checks that Parse rejects illegal programs.
func TestParse(t *testing.T) {
	for _, text := range []string{legal, locked} {
		_, err := oracle.Parse(text)
		require.NoError(t, err)
	}
	for i, c := range illegal {
		_, err := oracle.Parse(c.script)
		require.ErrorContains(t, err, c.says, fmt.Sprint(i))
	}
}

// TestShrink shrinks programs to one call.
func TestShrink(t *testing.T) {
	for seed := range uint64(20) {
		p := oracle.Draw(seed, oracle.Limits{})
		has := func(p *oracle.Program) bool {
			for i := range p.Phases {
				for j := range p.Phases[i].Steps {
					if s := &p.Phases[i].Steps[j]; s.Call.Operates() && !s.Refused && s.Target != s.Rank {
						return true
					}
				}
			}
			return false
		}
		if !has(p) {
			continue
		}
		small := oracle.Shrink(p, has)
		require.True(t, has(small))
		require.NoError(t, small.Check())
		require.Equal(t, 1, small.Steps(), "%s", small)
		require.Equal(t, 2, small.Ranks, "%s", small)
	}
}

// FuzzParse parses arbitrary text. A program that Parse accepts must come back unchanged from its own script.
func FuzzParse(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(oracle.Draw(seed, oracle.Limits{Ranks: 2, Phases: 2}).String())
	}
	for _, c := range illegal {
		f.Add(c.script)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := oracle.Parse(text)
		if err != nil {
			return
		}
		again, err := oracle.Parse(p.String())
		require.NoError(t, err)
		require.Equal(t, p.String(), again.String())
	})
}
