package scheduler_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/scheduler"
)

// pattern is that of an epoch of a script.
func pattern(t testing.TB, p *scheduler.Planner, script string) scheduler.Pattern {
	q := queued(t, script)
	q.Drop(len(q.Operations))
	return p.Ended(q)
}

// costsWithout are those of epochs that take so many times as long without Early,
// Interleave, Pack, GetsFirst, Merge, and Defer.
func costsWithout(early, interleave, pack, getsFirst, merge, deferring float64) *epochCosts {
	return costing(map[scheduler.Scheme]float64{
		scheduler.Early: early, scheduler.Interleave: interleave, scheduler.Pack: pack,
		scheduler.GetsFirst: getsFirst, scheduler.Merge: merge, scheduler.Defer: deferring,
	})
}

// TestLearner runs epochs under the schemes that a Learner chooses. On a quiet machine they
// take at most 1.05 times as long as under the scheme that is best for all of them, on a
// noisy one on average: few runs take longer than that. A run of
// no more than 300 epochs, each longer than a block, has time for few trials: its bound is
// what the first ones cost, and what it could win before they tell.
func TestLearner(t *testing.T) {
	p := planner(scheduler.All, true)
	const largeScript = "p1048576"
	many, few, large := pattern(t, p, "300*p16 300*g16"), pattern(t, p, "3*p8"), pattern(t, p, largeScript)
	const ever = 1 << 30
	always := func(c *epochCosts) []phase { return []phase{{ever, many, c, nil}} }
	inTurn := func(n int, a, b *epochCosts) []phase { return []phase{{n, many, a, nil}, {n, few, b, nil}} }

	pays := costsWithout(1.1, 1.05, 1.5, 1.05, 1.2, 3)
	noEarly := costsWithout(0.8, 1.05, 1.5, 1.05, 1.2, 3)
	noDefer := costsWithout(1, 1, 1, 1, 1, 0.8)
	for _, c := range []struct {
		name   string
		phases []phase
		long   float64
	}{
		{"all schemes pay", always(pays), 1.05},
		{"all pay a little", always(costsWithout(1.05, 1.05, 1.05, 1.05, 1.05, 1.05)), 1.05},
		{"all pay much", always(costsWithout(10, 10, 10, 1, 10, 30)), 1.15},
		{"nothing matters", always(costsWithout(1, 1, 1, 1, 1, 1)), 1},
		{"early start does not pay", always(noEarly), 1.12},
		{"early start does not quite pay", always(costsWithout(0.93, 1.05, 1.5, 1.05, 1.2, 3)), 1.12},
		{"interleaving does not pay", always(costsWithout(1, 0.85, 1.5, 0.95, 1.2, 3)), 1.15},
		{"merging does not pay", always(costsWithout(1, 1, 1, 1, 0.85, 1.5)), 1.15},
		{"waiting does not pay", always(noDefer), 1.2},
		{"nor do the last two of all", always(costsWithout(1.1, 0.9, 1, 1.1, 0.8, 1.1)), 1.2},
		{"waiting does not pay where little else matters", []phase{{ever, few, noDefer, nil}}, 1.12},
		{"what pays changes", []phase{{15000, many, pays, nil}, {ever, many, noEarly, nil}}, 1.05},
		{"two patterns, long in turn", inTurn(100, noEarly, noDefer), 1.1},
		{"two patterns, short in turn", inTurn(20, noEarly, noDefer), 1.1},
		{"two patterns, alternating", inTurn(1, noEarly, noEarly), 1.12},
		{"two patterns, alternating, of which one is to wait", inTurn(1, pays, noDefer), 1.05},
		{"a rare long epoch of another pattern", []phase{
			{100, many, costsWithout(0.95, 1, 1.5, 1, 1.2, 3), nil},
			{1, large, costsWithout(1.7, 1, 1, 1, 1, 1).times(40), queued(t, largeScript)},
		}, 1.25},
	} {
		for _, run := range []struct {
			name        string
			epochs      int
			epoch       time.Duration
			noisy       bool
			mean, worst float64
		}{
			{"quiet", 30000, 5 * time.Microsecond, false, 1.05, 1.05},
			{"quiet, few", 10000, 10 * time.Microsecond, false, 1.05, 1.05},
			{"noisy", 30000, 5 * time.Microsecond, true, 1.05, 1.2},
			{"noisy, longer", 30000, 30 * time.Microsecond, true, 1.05, 1.2},
			{"long", 300, time.Millisecond, false, c.long, 1.3},
		} {
			t.Run(c.name+"/"+run.name, func(t *testing.T) {
				const seeds = 10
				sum := 0.0
				for seed := range uint64(seeds) {
					m := simulated{r: rand.New(rand.NewPCG(seed, 2)), epoch: run.epoch, noisy: run.noisy}
					ratio, _ := m.run(scheduler.NewLearner(scheduler.All), run.epochs, c.phases)
					require.LessOrEqual(t, ratio, run.worst, "seed %d", seed)
					sum += ratio
				}
				require.LessOrEqual(t, sum/seeds, run.mean)
			})
		}
	}
}

// Large reads and writes begin by waiting for each other: few long epochs suffice where that is
// best, and are not too few to find out where it is not.
func TestPatient(t *testing.T) {
	p := planner(scheduler.All, true)
	for script, patient := range map[string]bool{
		"2*p9000 2*g9000": true, "100*p8 100*g8 p9000 g9000": true,
		"4*p9000": false, "4*g9000": false, "600*p8 600*g8": false, "p100 g100": false, "600*p8 600*g8 p9000": false, "8*p9000 g8": false,
	} {
		l := scheduler.NewLearner(scheduler.All)
		l.End(pattern(t, p, script), func() time.Duration { return 0 })
		require.Equal(t, patient, l.Scheme()&scheduler.Early == 0, script)
	}
	fixed := scheduler.NewLearner(without(scheduler.Interleave))
	fixed.End(pattern(t, p, "2*p9000 2*g9000"), func() time.Duration { return 0 })
	require.NotZero(t, fixed.Scheme()&scheduler.Early, "nothing to wait for")

	for _, c := range []struct {
		early       float64
		epochs      int
		noisy       bool
		mean, worst float64
	}{
		{0.87, 20, false, 1.04, 1.06},
		{0.87, 300, false, 1.04, 1.06},
		{1.1, 300, false, 1.08, 1.1},
		{1.1, 3000, false, 1.03, 1.05},
		{0.87, 300, true, 1.05, 1.2},
		{1.1, 3000, true, 1.08, 1.25},
		{2, 300, false, 1.1, 1.1},
		{2, 3000, true, 1.1, 1.5},
		{10, 3000, false, 1.15, 1.15},
	} {
		phases := []phase{{1 << 30, pattern(t, p, "16*p9000 16*g9000"), costsWithout(c.early, 1.05, 1, 1.2, 1, 1.4), nil}}
		sum := 0.0
		const seeds = 10
		for seed := range uint64(seeds) {
			m := simulated{r: rand.New(rand.NewPCG(seed, 4)), epoch: 5 * time.Millisecond, noisy: c.noisy}
			ratio, _ := m.run(scheduler.NewLearner(scheduler.All), c.epochs, phases)
			require.LessOrEqual(t, ratio, c.worst, "%v, seed %d", c, seed)
			sum += ratio
		}
		require.LessOrEqual(t, sum/seeds, c.mean, "%v", c)
	}
}

// Pauses between epochs earn no time for trials.
func TestPauses(t *testing.T) {
	large := pattern(t, planner(scheduler.All, true), "16*p1000000 16*g1000000")
	costs := costsWithout(1, 1.7, 1, 1.2, 1, 2)
	const rounds, epochs = 10, 16
	now, spent := time.Duration(0), 0.0
	l := scheduler.NewLearner(scheduler.All)
	for range rounds {
		now += 2 * time.Second
		for range epochs {
			cost := costs[l.Scheme()&^scheduler.Adapt]
			spent += cost
			now += time.Duration(cost * float64(17*time.Millisecond))
			l.End(large, func() time.Duration { return now })
		}
	}
	require.LessOrEqual(t, spent/rounds/epochs, 1.03)
}

// One pattern more than are remembered, in turn, is no reason to forget all.
func TestManyPatterns(t *testing.T) {
	p := planner(scheduler.All, true)
	for n, most := range map[int]float64{8: 1.03, 9: 1.06, 12: 1.09} {
		var phases []phase
		for i := range n {
			phases = append(phases, phase{100, pattern(t, p, fmt.Sprintf("%d*p600 g16", 20<<i)), costsWithout(0.8, 1.05, 1.5, 1.05, 1.2, 3), nil})
		}
		m := simulated{r: rand.New(rand.NewPCG(1, 4)), epoch: 30 * time.Microsecond}
		ratio, _ := m.run(scheduler.NewLearner(scheduler.All), 100_000, phases)
		require.LessOrEqual(t, ratio, most, "%d patterns", n)
	}
}

// Who gave up waiting, for a time, comes back to waiting as it was best.
func TestWaitingComesBack(t *testing.T) {
	large := pattern(t, planner(scheduler.All, true), "16*p9000 16*g9000")
	phases := []phase{{5000, large, costsWithout(0.9, 1, 1, 1, 1, 0.7), nil}, {1 << 30, large, costsWithout(0.5, 1, 1, 1, 1, 0.8), nil}}
	m := simulated{r: rand.New(rand.NewPCG(1, 8)), epoch: 30 * time.Microsecond}
	_, under := m.run(scheduler.NewLearner(scheduler.All), 100_000, phases)
	require.Greater(t, under[without(scheduler.Early)], 80_000)
}

// TestWhatIsKept counts under which schemes most epochs are of a long run: it is the best,
// where that is better by 5 % and others are worse by that.
func TestWhatIsKept(t *testing.T) {
	many := pattern(t, planner(scheduler.All, true), "300*p16 300*g16")
	for _, c := range []struct {
		name  string
		costs *epochCosts
		best  scheduler.Scheme
	}{
		{"all", costsWithout(1.05, 1.05, 1.05, 1.05, 1.05, 1.05), scheduler.All},
		{"not early", costsWithout(0.95, 1.05, 1.05, 1.05, 1.05, 1.05), without(scheduler.Early)},
		{"no interleaving", costsWithout(1.05, 0.95, 1.05, 1.2, 1.05, 1.05), without(scheduler.Interleave)},
		{"not gets first", costsWithout(1.05, 1, 1.05, 0.95, 1.05, 1.05), without(scheduler.GetsFirst | scheduler.Interleave)},
		{"not merged", costsWithout(1.05, 1.05, 1.05, 1.05, 0.95, 1.05), without(scheduler.Merge)},
		{"not deferred", costsWithout(1.05, 1.05, 1.05, 1.05, 1.05, 0.95), scheduler.Adapt},
	} {
		for _, noisy := range []bool{false, true} {
			// Of five machines, so that it may have bad luck on one that is noisy.
			share := make([]float64, 5)
			for seed := range share {
				m := simulated{r: rand.New(rand.NewPCG(uint64(seed), 3)), epoch: 5 * time.Microsecond, noisy: noisy}
				_, under := m.run(scheduler.NewLearner(scheduler.All), 100_000, []phase{{1 << 30, many, c.costs, nil}})
				share[seed] = float64(under[c.best]) / 100_000
			}
			slices.Sort(share)
			require.Greater(t, share[2], 0.6, "%s, noisy %v: %v", c.name, noisy, share)
		}
	}
}

// TestTrialsLoseLittle: what trials lose of a long run, in which nothing is to be learned,
// is 2 % of it, and the clock is read seldom.
func TestTrialsLoseLittle(t *testing.T) {
	many := pattern(t, planner(scheduler.All, true), "300*p16 300*g16")
	for _, times := range []float64{1.03, 1.1, 1.4, 2.5, 10, 30} {
		for _, noisy := range []bool{false, true} {
			m := simulated{r: rand.New(rand.NewPCG(0, 4)), epoch: 5 * time.Microsecond, noisy: noisy}
			ratio, _ := m.run(scheduler.NewLearner(scheduler.All), 300_000, []phase{{1 << 30, many, costsWithout(times, 1, times, times, times, times), nil}})
			require.Less(t, ratio, 1.02, "schemes that pay %v times, noisy %v", times, noisy)
			require.Less(t, m.reads, 300_000/10)
		}
	}
}

// TestLearnerKeepsToItsScheme: whatever the epochs, a Learner uses no single scheme outside its initial scheme. It
// leaves out none that is not relevant, unless it leaves out Defer.
func TestLearnerKeepsToItsScheme(t *testing.T) {
	for seed := range testsize.Samples(t, 200) {
		r := rand.New(rand.NewPCG(seed, 5))
		base := scheduler.Scheme(r.IntN(int(scheduler.All)+1)) | scheduler.Defer
		p := planner(base, r.IntN(2) > 0)
		patterns := []scheduler.Pattern{{}}
		for _, script := range []string{"p8", "g8", "p8 g8", "a8 f8", "100*p8 10*g9000", "2000*p8", "64*g8", "p100000", "p100000 g100000", "n"} {
			patterns = append(patterns, pattern(t, p, script))
		}
		l := scheduler.NewLearner(base)
		now := time.Duration(0)
		clock := func() time.Duration { return now }
		change := 1 + r.IntN(100)
		relevant := scheduler.Scheme(0)
		some := patterns[r.IntN(len(patterns)):][:1]
		if r.IntN(3) > 0 {
			some = patterns
		}
		for _, p := range some {
			relevant |= p.Relevant()
		}
		at := some[0]
		for i := range 5000 {
			if i%change == 0 {
				at = some[r.IntN(len(some))]
			}
			s := l.Scheme()
			switch {
			case s&^base != 0:
				t.Fatalf("seed %d, of %b took %b", seed, base, s)
			case base&scheduler.Adapt == 0 && s != base:
				t.Fatalf("seed %d, of %b, which is fixed, took %b", seed, base, s)
			case s&scheduler.Defer == 0:
			case (base&^s)&^(relevant|scheduler.Interleave) != 0:
				t.Fatalf("seed %d, of %b took %b for %+v", seed, base, s, some)
			case s&scheduler.GetsFirst == 0 && s&base&scheduler.Interleave != 0 && base&scheduler.GetsFirst != 0:
				t.Fatalf("seed %d: %b", seed, s)
			}
			now += time.Duration(r.IntN(int(2 * time.Microsecond << r.IntN(10))))
			l.End(at, clock)
		}
	}
}

// TestTargetsOfAFence has the epochs on two ranks end together. Early start pays on one as
// much as it costs on the other, and both try it at the same time: each Learner finds what is
// so for its own rank.
func TestTargetsOfAFence(t *testing.T) {
	p := planner(scheduler.All, true)
	patterns := [2]scheduler.Pattern{pattern(t, p, "100*p8 100*g8 2*p9000 2*g9000"), pattern(t, p, "2000*p8")}
	costs := [2]*epochCosts{costsWithout(0.8, 1, 1, 1, 1, 2), costsWithout(1.25, 1, 1, 1, 1, 2)}
	const early = scheduler.Adapt | scheduler.Defer | scheduler.Early
	const epochs = 50_000
	best := 0
	m := simulated{r: rand.New(rand.NewPCG(0, 7)), epoch: 5 * time.Microsecond}
	learners := [2]*scheduler.Learner{scheduler.NewLearner(early), scheduler.NewLearner(early)}
	for range epochs {
		both := [2]scheduler.Scheme{learners[0].Scheme(), learners[1].Scheme()}
		if both == [2]scheduler.Scheme{early &^ scheduler.Early, early} {
			best++
		}
		m.pass((costs[0][both[0]&^scheduler.Adapt] + costs[1][both[1]&^scheduler.Adapt]) / 2 * float64(m.epoch))
		for i, l := range learners {
			l.End(patterns[i], m.clock)
		}
	}
	require.Greater(t, best, epochs*8/10)
}

// There is a Learner for each window and rank: it is small, and does not grow.
func TestLearnerIsSmall(t *testing.T) {
	require.LessOrEqual(t, reflect.TypeFor[scheduler.Learner]().Size(), uintptr(1<<10))
	p := planner(scheduler.All, true)
	patterns := []scheduler.Pattern{pattern(t, p, "p8"), pattern(t, p, "64*g8"), pattern(t, p, "p8 g9000")}
	l := scheduler.NewLearner(scheduler.All)
	now := time.Duration(0)
	clock := func() time.Duration { now += time.Microsecond; return now }
	require.Zero(t, testing.AllocsPerRun(10, func() {
		for i := range 3000 {
			l.End(patterns[i/30%3], clock)
		}
	}))
}

// BenchmarkLearner ends epochs of 5 us.
func BenchmarkLearner(b *testing.B) {
	p := planner(scheduler.All, true)
	for _, change := range []struct {
		name  string
		every int
	}{{"one pattern", 1 << 62}, {"two in turn", 100}, {"alternating", 1}} {
		b.Run(change.name, func(b *testing.B) {
			patterns := []scheduler.Pattern{pattern(b, p, "64*p8"), pattern(b, p, "64*g8 p9000")}
			l := scheduler.NewLearner(scheduler.All)
			begin, i := time.Now(), 0
			clock := func() time.Duration { return time.Since(begin) + time.Duration(i)*5*time.Microsecond }
			schemes := scheduler.Scheme(0)
			b.ReportAllocs()
			for b.Loop() {
				i++
				schemes |= l.Scheme()
				l.End(patterns[i/change.every%2], clock)
			}
		})
	}
}
