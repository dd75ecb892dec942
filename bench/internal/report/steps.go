package report

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/onesided/rma/bench/internal/cli"
	"github.com/onesided/rma/bench/internal/compare"
	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/bench/internal/experiments/scale"
	"github.com/onesided/rma/bench/internal/experiments/schemes"
	"github.com/onesided/rma/bench/internal/paper"
	"github.com/onesided/rma/bench/internal/plan"
	"github.com/onesided/rma/bench/internal/runner"
	"github.com/onesided/rma/bench/internal/stats"
	"github.com/onesided/rma/bench/internal/table"
	"github.com/onesided/rma/verbs/sim"
)

// A step is one step of the run. seconds is a guess of its time. Steps of one key do the same work in different
// rounds.
type step struct {
	about, key string
	seconds    float64
	run        func(ctx context.Context) error
	// late is set if the step's library was too slow and is not run again. It is nil for a step that is no
	// measurement of a library.
	late *bool
}

// plan arranges the measurements. The output of failed ranks goes to stderr.
func (r *report) plan(stderr io.Writer) error {
	for _, o := range r.o.devices {
		jobs, err := r.o.request.Jobs(0)
		if err != nil {
			return err
		}
		for _, j := range plan.ByCase(jobs) {
			r.addLine(o, compare.Ours, j, func(ctx context.Context, j plan.Job) ([]plan.Result, error) { return o.Collect(ctx, j, stderr) })
			for _, p := range r.peers {
				if !j.Cells[0].Case.Ours && o.Device != device.IBV {
					r.addLine(o, p.Name, j, func(ctx context.Context, j plan.Job) ([]plan.Result, error) { return p.Run(ctx, j, o) })
				}
			}
		}
	}
	r.sortLines()
	for round := range r.o.rounds {
		for _, l := range stats.InRound(round, r.lines) {
			r.steps = append(r.steps, step{
				about:   fmt.Sprintf("round %d of %d: %s, %s", round+1, r.o.rounds, l.benchCase().Name, l.name()),
				key:     l.benchCase().Name + ", " + l.name(),
				seconds: l.seconds(), run: func(ctx context.Context) error { return l.take(ctx, round) }, late: &l.late,
			})
		}
	}
	r.planKernels()
	if r.o.whole {
		r.planSchemes(stderr)
		r.planScale()
	}
	if r.o.paper {
		r.planPaper()
	}
	return nil
}

func (r *report) addLine(o *runner.Options, by string, j plan.Job, run func(context.Context, plan.Job) ([]plan.Result, error)) {
	l := &line{device: o.Device, by: by, run: run, job: j}
	for _, one := range j.Cells {
		l.cells = append(l.cells, &cell{Cell: one, Column: compare.Column{Series: stats.NewSeries(r.o.rounds)}, distributions: make([]*stats.Percentiles, r.o.rounds)})
	}
	r.lines = append(r.lines, l)
}

// sortLines makes the lines of one case adjacent, so that they are measured at the same speed of the machine.
func (r *report) sortLines() {
	var order []string
	for _, l := range r.lines {
		if name := l.benchCase().Name; !slices.Contains(order, name) {
			order = append(order, name)
		}
	}
	slices.SortStableFunc(r.lines, func(a, b *line) int {
		return slices.Index(order, a.benchCase().Name) - slices.Index(order, b.benchCase().Name)
	})
}

// planSchemes compares schemes over TCP, if that is among the devices and no switch sets schemes.
func (r *report) planSchemes(stderr io.Writer) {
	i := slices.IndexFunc(r.o.devices, func(o *runner.Options) bool { return o.Device == device.TCP })
	if i < 0 || r.o.devices[i].Settings.Arranges != "" {
		return
	}
	o := *r.o.devices[i]
	o.Percentiles = false
	schemes.Prepare(&o, rounds)
	words := []string{cli.SchemesCommand, "-rounds", fmt.Sprint(rounds)}
	r.schemes = &schemes.Table{Command: cli.CommandLine(append(words, patterns...)), Machine: r.Machine, Device: o.Device, Rounds: rounds}
	for _, name := range patterns {
		r.steps = append(r.steps, step{about: "schemes of " + name, key: "schemes of " + name, seconds: 4, run: func(ctx context.Context) error {
			selected, err := plan.Parse([]string{name})
			if err != nil {
				return err
			}
			jobs, err := (&plan.Selection{Cases: selected}).Jobs(0)
			if err != nil {
				return err
			}
			return o.Start(ctx, jobs[0], stderr, func(result plan.Result) error {
				r.schemes.Add(result)
				return nil
			})
		}})
	}
}

// patterns are the epochs by which the report compares schemes.
var patterns = []string{"put_flush_lat:8", "scatter_rate", "fence_rate", "pattern16_bw:8192"}

// rounds is the number of rounds of schemes.
const rounds = 5

func (r *report) planScale() {
	for _, w := range scale.Workloads() {
		g := &scale.Growth{Workload: w.Name, Device: device.Sim + card}
		r.scale = append(r.scale, g)
		for _, n := range numbersOfRanks {
			about := fmt.Sprintf("%s, %s", w.Name, table.Plural(n, "rank"))
			r.steps = append(r.steps, step{about: about, key: about, seconds: float64(n) / 100, run: func(ctx context.Context) error {
				card, err := sim.ByName(card)
				if err != nil {
					return err
				}
				p, err := w.At(ctx, &scale.Options{Card: card, Seed: 1, Timeout: 10 * time.Minute}, n)
				if err == nil {
					g.Points = append(g.Points, p)
				}
				return err
			}})
		}
	}
}

// numbersOfRanks are the numbers of ranks that the report compares, on cards of card.
var numbersOfRanks = []int{4, 16, 64, 256}

const card = "ndr-2024"

func (r *report) planPaper() {
	for _, f := range paper.Figures() {
		r.steps = append(r.steps, step{about: "figure " + f.Name(), key: "figure " + f.Name(), seconds: 4, run: func(ctx context.Context) error {
			p, err := f.Reproduce(ctx, &paper.Options{Seed: 1, Timeout: 2 * time.Minute})
			if err == nil {
				r.figures = append(r.figures, p)
			}
			return err
		}})
	}
}
