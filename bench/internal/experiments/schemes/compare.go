package schemes

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/onesided/rma/bench/internal/cases"
	"github.com/onesided/rma/bench/internal/cli"
	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/bench/internal/plan"
	"github.com/onesided/rma/bench/internal/runner"
	"github.com/onesided/rma/bench/internal/stats"
	"github.com/onesided/rma/internal/hint"
	"github.com/onesided/rma/scheduler"
	"github.com/onesided/rma/world"
)

// A Scheme is a row of the comparison of schemes.
type Scheme struct {
	Name    string
	without scheduler.Scheme // the schemes that its windows exclude
	About   string
}

// All returns the schemes to compare. The first is the adaptive one, which windows use by default; the others are
// fixed.
func All() []Scheme {
	const fixed = scheduler.Adapt
	return []Scheme{
		{"adaptive", 0, "the default of windows: they leave out the schemes that do not pay"},
		{"all", fixed, "every scheme, whether it pays or not"},
		{"early=off", fixed | scheduler.Early, "every scheme but this one, and so on"},
		{"merge=off", fixed | scheduler.Merge, ""},
		{"pack=off", fixed | scheduler.Pack, ""},
		{"interleave=off", fixed | scheduler.Interleave, ""},
		{"getsfirst=off", fixed | scheduler.GetsFirst, ""},
		{"at-once", fixed | scheduler.Defer, "each operation is sent when it is called"},
	}
}

// Patterns returns the epochs by which schemes are compared if no cases are named.
func Patterns() []string {
	return []string{
		"put_flush_lat:8", "get_bw:8", "scatter_rate", "row_rate", "mixed_rate", "overlap_put_lat:1048576", "changing_lat",
		"pscw_put_lat:8", "pattern16_bw:1024,8192,65536,1048576", "fence_put_lat:8", "fence_rate",
		"hashtable_insert_rate", "hashtable_lookup_rate", "put_target_cpu", "acc_target_cpu",
	}
}

// A durations says how long schemes run.
type durations struct {
	// visit is about the duration of a loop of a scheme. Within a round the loops of all schemes follow each other in
	// less time than a machine keeps its speed.
	visit time.Duration
	// learning is how long a scheme runs before the first round.
	learning time.Duration
}

var usualDurations = durations{visit: 20 * time.Millisecond, learning: 200 * time.Millisecond}

func (t durations) shortened(shorten int) durations {
	return durations{visit: cases.Shortened(t.visit, shorten), learning: cases.Shortened(t.learning, shorten)}
}

// SimulatedRounds is the number of rounds of schemes in virtual time, where only the adaptive one differs from round
// to round.
const SimulatedRounds = 3

// fewestIterations is the least number of iterations of a loop, however long they take. A loop has steadyIterations, among
// which the first with a cold cache counts little, if they take no longer than longestVisit.
const (
	fewestIterations = 3
	steadyIterations = 16
	longestVisit     = 200 * time.Millisecond
)

// Prepare makes o compare schemes, in rounds, instead of measuring cells with its own.
func Prepare(o *runner.Options, rounds int) {
	o.Words, o.Arguments = []string{cli.SchemesCommand}, []string{"-rounds", fmt.Sprint(rounds)}
	o.Measure = func(ctx context.Context, s *runner.Rank, cells []cases.Cell) error {
		return (&rank{s, usualDurations.shortened(s.Shorten)}).compare(ctx, cells, rounds)
	}
	o.Refuses = func(deviceName string) error {
		if deviceName != device.TCP && deviceName != device.IBV {
			return cli.Usagef("schemes are of what goes over a network, and the ranks use %s: have the launcher give them %s=%s or %s", deviceName, device.Variable, device.TCP, device.IBV)
		}
		return nil
	}
}

// A rank is a rank that compares schemes.
type rank struct {
	*runner.Rank
	durations durations
}

// compare measures cells, each with all schemes. It is collective.
func (s *rank) compare(ctx context.Context, cells []cases.Cell, rounds int) error {
	for _, one := range cells {
		if why := s.Forbids(one); why != "" {
			if err := s.Publish(plan.Skipped(one, s.World.Size(), why)); err != nil {
				return err
			}
			continue
		}
		results, err := s.compareAt(ctx, one, rounds)
		if err != nil {
			return fmt.Errorf("bench: schemes of %s: %w", one.String(), err)
		}
		for _, r := range results {
			if err := s.Publish(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// A schemeRun is a scheme as it is measured in a cell. Its Buffers exist from before the first round until the end, so
// that they keep what they have learned.
type schemeRun struct {
	Scheme
	board      *cases.Buffers
	iterations int          // of a loop
	values     stats.Series // of each round
}

// compareAt measures one cell.
func (s *rank) compareAt(ctx context.Context, one cases.Cell, rounds int) ([]plan.Result, error) {
	runs, err := s.runs(ctx, one, rounds)
	if err != nil {
		return nil, err
	}
	for _, e := range runs {
		if e.iterations, err = s.learn(ctx, e.board, one); err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name, err)
		}
	}
	for round := range rounds {
		for _, e := range stats.InRound(round, runs) {
			took, _, err := s.Timed(ctx, e.board, one, e.iterations)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", e.Name, err)
			}
			e.values.Set(round, one.Case.Value(took.Seconds()/float64(e.iterations), one.Size))
		}
	}
	for _, e := range runs {
		if err := e.board.End(ctx, one.Case.Kind); err != nil {
			return nil, err
		}
		if err := e.board.Close(); err != nil {
			return nil, err
		}
	}
	return judge(one, s.World.Size(), runs), nil
}

// runs returns all schemes, each with Buffers in the synchronization of the cell.
func (s *rank) runs(ctx context.Context, one cases.Cell, rounds int) ([]*schemeRun, error) {
	var runs []*schemeRun
	for i, each := range All() {
		e := &schemeRun{Scheme: each, values: stats.NewSeries(rounds)}
		options := append(slices.Clone(s.WindowOptions), hint.Without(each.without))
		var err error
		if i == 0 {
			e.board, err = s.NewBuffers(ctx, []cases.Cell{one}, options)
		} else {
			e.board, err = runs[0].board.WithNewWindow(ctx, s.World, options)
		}
		if err != nil {
			return nil, err
		}
		if err := e.board.Begin(ctx, one.Case.Kind); err != nil {
			return nil, err
		}
		runs = append(runs, e)
	}
	return runs, nil
}

// learn runs a cell's loop on Buffers until it has reached its steady state. It returns the number of iterations of a
// visit.
func (s *rank) learn(ctx context.Context, b *cases.Buffers, one cases.Cell) (int, error) {
	iterations, began := fewestIterations, s.World.Now()
	for {
		start := s.World.Now()
		if _, _, err := s.Timed(ctx, b, one, iterations); err != nil {
			return 0, err
		}
		next, done := s.durations.afterLoop(iterations, s.World.Now()-start, s.World.Now()-began)
		// Rank 0's clock counts.
		decision := []int{next, 0}
		if done {
			decision[1] = 1
		}
		if err := world.Broadcast(ctx, s.World, 0, decision); err != nil {
			return 0, err
		}
		if iterations = decision[0]; decision[1] == 1 {
			return iterations, nil
		}
	}
}

// afterLoop returns the number of iterations of the next loop, from the number and the time of the last one. done
// reports whether the scheme has run long enough.
func (t durations) afterLoop(iterations int, took, since time.Duration) (next int, done bool) {
	if took < t.visit {
		return 2 * iterations, false
	}
	if since < t.learning {
		return iterations, false
	}
	in := func(visit time.Duration) int { return int(float64(iterations) * visit.Seconds() / took.Seconds()) }
	return max(fewestIterations, in(t.visit), min(steadyIterations, in(longestVisit))), true
}

// judge returns the medians of the rounds, and the ratios of the times to those of the best fixed scheme.
func judge(one cases.Cell, ranks int, runs []*schemeRun) []plan.Result {
	var costs []stats.Series
	for _, e := range runs {
		costs = append(costs, stats.Cost(one.Case.Unit, e.values))
	}
	best := bestFixed(costs)
	var results []plan.Result
	for i, e := range runs {
		ratio := stats.Ratios(costs[i], costs[best])
		results = append(results, plan.Result{
			Case: one.Case.Name, Size: one.Size, Unit: one.Case.Unit, Ranks: ranks, Repeat: len(e.values.Values),
			Value: *e.values.Median, Min: *e.values.Min, Max: *e.values.Max,
			Scheme: e.Name, Ratio: &ratio, Best: i == best,
		})
	}
	return results
}

// bestFixed returns the fixed scheme that takes the least time in relation to the second scheme within a round, by
// the median of the rounds. The best of each round would vary, and would be better by chance than any scheme is.
func bestFixed(costs []stats.Series) int {
	best, least := 1, 1.0
	for i, c := range costs {
		if i == 0 {
			continue
		}
		if ratio := stats.Ratios(c, costs[1]); ratio.Median != nil && *ratio.Median < least {
			best, least = i, *ratio.Median
		}
	}
	return best
}
