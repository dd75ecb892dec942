package schemes

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/bench/internal/benchtest"
	"github.com/onesided/rma/bench/internal/cases"
	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/bench/internal/golden"
	"github.com/onesided/rma/bench/internal/machine"
	"github.com/onesided/rma/bench/internal/plan"
	"github.com/onesided/rma/bench/internal/plan/plantest"
	"github.com/onesided/rma/bench/internal/runner"
	"github.com/onesided/rma/bench/internal/stats"
	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/scheduler"
	"github.com/onesided/rma/verbs/sim"
)

func TestEachWayIsLeftOutByOneFixedScheme(t *testing.T) {
	all := All()
	assert.Equal(t, "adaptive", all[0].Name)
	assert.Zero(t, all[0].without)
	var leftOut []scheduler.Scheme
	for _, s := range all[1:] {
		assert.NotZero(t, s.without&scheduler.Adapt, "%s is fixed", s.Name)
		leftOut = append(leftOut, s.without&^scheduler.Adapt)
	}
	want := []scheduler.Scheme{0}
	for way := scheduler.Scheme(1); way != 0; way <<= 1 {
		if way&scheduler.All != 0 && way != scheduler.Adapt {
			want = append(want, way)
		}
	}
	assert.ElementsMatch(t, want, leftOut)
}

func TestLoopsGrowUntilTheyFillAVisit(t *testing.T) {
	const ms = time.Millisecond
	for _, test := range []struct {
		name        string
		iterations  int
		took, since time.Duration
		next        int
		done        bool
	}{
		{"short", 3, ms, ms, 6, false},
		{"short, and learnt for long", 3, ms, 500 * ms, 6, false},
		{"long enough, still learning", 1000, 25 * ms, 199 * ms, 1000, false},
		{"as long as a visit", 1000, 20 * ms, 200 * ms, 1000, true},
		{"twice as long", 1000, 40 * ms, 300 * ms, 500, true},
		{"of few long iterations", 3, 300 * ms, 300 * ms, 3, true},
		{"of iterations that are not so long", 3, 90 * ms, 300 * ms, 6, true},
		{"of iterations that are long for a visit", 3, 9 * ms * 3, 300 * ms, 16, true},
	} {
		next, done := durations{20 * ms, 200 * ms}.afterLoop(test.iterations, test.took, test.since)
		assert.Equal(t, test.next, next, test.name)
		assert.Equal(t, test.done, done, test.name)
	}
}

// entered are entrants of one cell with their times, 0 in a round without one. Each is
// what a machine gives that takes speeds times as long in a round.
func entered(one cases.Cell, speeds []float64, times map[string]float64) []*schemeRun {
	var entrants []*schemeRun
	for _, s := range All() {
		e := &schemeRun{Scheme: s, values: stats.NewSeries(len(speeds))}
		for round, speed := range speeds {
			cost := times[s.Name] * speed
			if cost == 0 {
				cost = 20 * speed
			}
			if one.Case.MoreIsBetter() {
				cost = 1 / cost
			}
			e.values.Set(round, cost)
		}
		entrants = append(entrants, e)
	}
	return entrants
}

func TestTheBestFixedSchemeIsTheStandard(t *testing.T) {
	for _, name := range []string{"put_flush_lat:8", "scatter_rate"} {
		for _, test := range []struct {
			times map[string]float64
			best  string
			ratio float64 // of the adaptive
		}{
			{map[string]float64{"adaptive": 11, "merge=off": 10}, "merge=off", 1.1},
			{map[string]float64{"adaptive": 10, "merge=off": 11}, "merge=off", 10. / 11},
			{map[string]float64{"adaptive": 20}, "all", 1},
			{map[string]float64{"adaptive": 30, "at-once": 5, "pack=off": 6}, "at-once", 6},
		} {
			one := plantest.Job(t, name).Cells[0]
			results := judge(one, 2, entered(one, []float64{1, 1.4, 1, 1.4, 1.2}, test.times))
			require.Len(t, results, len(All()))
			assert.InDelta(t, test.ratio, *results[0].Ratio.Median, 1e-9, "%s: the machine's speed is not in the ratio", name)
			assert.InDelta(t, test.ratio, *results[0].Ratio.Max, 1e-9)
			assert.Equal(t, test.best, bestOf(results))
			assert.Equal(t, 5, results[0].Repeat)
		}
	}
}

func TestASystemThatTellsNoProcessorTimeHasNoRatios(t *testing.T) {
	one := plantest.Job(t, "put_target_cpu").Cells[0]
	entrants := entered(one, []float64{0, 0}, nil)
	results := judge(one, 2, entrants)
	summary := &Table{Device: device.TCP, Rounds: 2}
	for _, r := range results {
		assert.Nil(t, r.Ratio.Median)
		summary.Add(r)
	}
	assert.Nil(t, summary.worst())
	assert.NoError(t, summary.write(new(strings.Builder)))
}

func TestTheTableOfSchemesShowsValuesAndRatios(t *testing.T) {
	results := &Table{
		Command: "go run ./bench schemes", Device: device.TCP, Rounds: 3,
		Machine: machine.Machine{CPU: "Some CPU", Cores: 2, System: "linux 6.1 amd64", Go: "go1.26"},
	}
	var lines strings.Builder
	report := plan.Printer("text", &lines)
	for i, name := range []string{"put_flush_lat:8", "scatter_rate", "pattern16_bw:1048576", "fence_rate", "hashtable_lookup_rate"} {
		one := plantest.Job(t, name).Cells[0]
		times := map[string]float64{"adaptive": 20 + float64(i), "early=off": 19, "at-once": 200, "merge=off": 20.5}
		for _, r := range judge(one, 2, entered(one, []float64{1, 1.4, 1}, times)) {
			results.Add(r)
			require.NoError(t, report(r))
		}
		results.Add(plan.Result{Case: "acc_flush_lat", Size: 16, Skipped: "for a reason"})
	}
	one := plantest.Job(t, "get_flush_lat:8").Cells[0]
	results.Add(judge(one, 2, entered(one, []float64{1, 1.4, 1}, nil))[0]) // and then it was ended
	var text strings.Builder
	require.NoError(t, results.write(&text))
	golden.Check(t, "testdata/schemes.golden", lines.String()+text.String())
}

// Every kind of case with epochs has a pattern. A plain run has two of them, in virtual time: to make a real window for each scheme takes seconds.
func TestSchemesAlternateInEveryPattern(t *testing.T) {
	names, real := []string{"put_flush_lat:8", "fence_put_lat:8", "pscw_put_lat:8", "hashtable_insert_rate", "put_target_cpu"}, testsize.N(1) > 1
	if !real {
		benchtest.OnlyVirtual(t)
	}
	for _, i := range testsize.Turns(0, len(names), 2) {
		name := names[i]
		t.Run(name, func(t *testing.T) {
			o := &runner.Options{Device: device.Local, Shorten: 200, Timeout: await.Limit}
			if !real {
				card, err := sim.ByName("pcie-2005")
				require.NoError(t, err)
				o.Card, o.Seed, o.Rails = &card, 1, 1
			}
			Prepare(o, 2)
			results, err := o.Collect(t.Context(), plantest.Job(t, name), io.Discard)
			require.NoError(t, err)
			require.Len(t, results, len(All()))
			for i, r := range results {
				assert.Equal(t, name, strings.TrimSuffix(r.Cell(), ":1000"))
				assert.Equal(t, All()[i].Name, r.Scheme)
				if name == "put_target_cpu" {
					// The system may count processor time by ticks that are longer than a loop. In virtual time direct puts take
					// the target no more than a poll now and then.
					assert.GreaterOrEqual(t, r.Value, 0.0)
					continue
				}
				assert.Positive(t, r.Value)
				assert.Len(t, r.Ratio.Known(), 2)
			}
		})
	}
}

func TestAShortRunHasShortVisits(t *testing.T) {
	assert.Equal(t, durations{visit: 2 * time.Millisecond, learning: 20 * time.Millisecond}, usualDurations.shortened(10))
	assert.Equal(t, usualDurations, usualDurations.shortened(0))
}

func TestRanksAreToldToCompareSchemes(t *testing.T) {
	o := new(runner.Options)
	Prepare(o, 4)
	assert.Equal(t, []string{"schemes"}, o.Words)
	assert.Equal(t, []string{"-rounds", "4"}, o.Arguments)
	assert.NotNil(t, o.Measure)
}
