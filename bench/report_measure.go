package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/onesided/rma/bench/internal/cases"
	"github.com/onesided/rma/bench/internal/cli"
	"github.com/onesided/rma/bench/internal/compare"
	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/bench/internal/experiments/scale"
	"github.com/onesided/rma/bench/internal/experiments/schemes"
	"github.com/onesided/rma/bench/internal/machine"
	"github.com/onesided/rma/bench/internal/paper"
	"github.com/onesided/rma/bench/internal/peers"
	"github.com/onesided/rma/bench/internal/plan"
	"github.com/onesided/rma/bench/internal/program"
	"github.com/onesided/rma/bench/internal/runner"
	"github.com/onesided/rma/bench/internal/stats"
	"github.com/onesided/rma/bench/internal/table"
	"github.com/onesided/rma/verbs/sim"
)

// A report holds the measurements of a report.
type report struct {
	o       *reportOptions
	Command string
	Machine machine.Machine
	Date    time.Time
	Procs   int
	// Peers have their versions. Missing are those that are not installed.
	Peers, Missing []string
	peers          []*peers.Peer
	// Ended is the reason why the report has less than was requested, or "".
	Ended string
	// failed are the steps that failed and are in no table, each with its reason.
	failed []string
	load   machine.Load
	took   time.Duration

	lines   []*reportLine
	schemes *schemes.Table
	scale   []*scale.Growth
	figures []*paper.Plot
	kernels []*kernelReport
	// noKernels says why there are no kernels. It is "" if they are not requested.
	noKernels string
	steps     []reportStep
}

// A reportLine is one case as one contestant measures it on one device: a line of a plot.
type reportLine struct {
	device, by string
	run        func(ctx context.Context, j plan.Job) ([]plan.Result, error)
	job        plan.Job
	cells      []*reportCell
	late       bool // was too slow, and is not run again
}

// A reportCell is one size of a reportLine.
type reportCell struct {
	cases.Cell
	compare.Column
	tails []*stats.Percentiles // of each round, nil without percentiles
}

// name returns the name of the line in a legend.
func (l *reportLine) name() string {
	if l.by == compare.Ours {
		return l.device
	}
	return l.device + ", " + l.by
}

func (l *reportLine) benchCase() *cases.Case { return l.job.Cells[0].Case }

// A reportStep is one step of the run. seconds is a guess of its time. Steps of one key do the same work in different
// rounds.
type reportStep struct {
	about, key string
	seconds    float64
	run        func(ctx context.Context) error
	// late is set if the step's contestant was too slow and is not run again. It is nil for a step that is no
	// measurement of a contestant.
	late *bool
}

// failure returns a line about the step's failure. The error of a step may begin with the step's name.
func (s *reportStep) failure(err error) string {
	if text := cli.Cause(err); strings.HasPrefix(text, s.about) {
		return text
	}
	return s.about + ": " + cli.Cause(err)
}

func newReport(o *reportOptions, command string) *report {
	return &report{o: o, Command: command, Machine: machine.This(), Date: time.Now(), Procs: runtime.GOMAXPROCS(0)}
}

// peers.Find compiles the programs of the installed peers. clean removes them.
func (r *report) findPeers(ctx context.Context) (clean func(), err error) {
	r.peers, r.Missing = peers.Find(ctx)
	dir, err := os.MkdirTemp("", "rma-bench-")
	if err != nil {
		return nil, fmt.Errorf("bench: no place for the peers' programs: %w", err)
	}
	r.peers = slices.DeleteFunc(r.peers, func(p *peers.Peer) bool {
		err := p.Build(ctx, dir)
		if err != nil {
			r.Missing = append(r.Missing, peers.LeftOut(p, err))
		} else {
			r.Peers = append(r.Peers, p.Title+" "+p.Version)
		}
		return err != nil
	})
	if ctx.Err() != nil {
		return nil, errors.Join(context.Cause(ctx), os.RemoveAll(dir))
	}
	r.findKernels(ctx, dir)
	return func() { os.RemoveAll(dir) }, nil
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
			r.steps = append(r.steps, reportStep{
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
	l := &reportLine{device: o.Device, by: by, run: run, job: j}
	for _, one := range j.Cells {
		l.cells = append(l.cells, &reportCell{Cell: one, Column: compare.Column{Series: stats.NewSeries(r.o.rounds)}, tails: make([]*stats.Percentiles, r.o.rounds)})
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
	slices.SortStableFunc(r.lines, func(a, b *reportLine) int {
		return slices.Index(order, a.benchCase().Name) - slices.Index(order, b.benchCase().Name)
	})
}

// take measures the line in a round.
func (l *reportLine) take(ctx context.Context, round int) error {
	if l.late {
		for _, c := range l.cells {
			c.Pass()
		}
		return nil
	}
	results, err := l.run(ctx, l.job)
	ended := ctx.Err() != nil
	if ended {
		err = nil // a missing result is no failure after the end
	}
	l.late = errors.Is(err, program.ErrTimeout)
	for _, c := range l.cells {
		c.Enter(round, l.job, c.Cell, results, err)
		for _, r := range results {
			if r.Of(c.Cell) {
				c.tails[round] = r.Percentiles
			}
		}
	}
	if ended {
		return context.Cause(ctx)
	}
	return nil
}

// seconds estimates the time of a round of the line: starting the ranks, and a loop for each of reportLoops, the
// warm-ups and the percentiles.
func (l *reportLine) seconds() float64 {
	start, turn, rate := 0.3, 0.5e-6, 8e9
	if l.device == device.TCP {
		turn, rate = 12e-6, 2e9
	}
	sum := start
	for _, c := range l.cells {
		if c.Case.Iterations == nil {
			sum++
			continue
		}
		bytes := float64(c.Size)
		if c.Case.Unit == stats.Megabytes {
			bytes *= cases.InFlight
		}
		sum += float64(c.Case.Iterations(c.Size)) * (turn + bytes/rate) * (reportLoops + 1) * 1.1
	}
	return sum
}

// reportPatterns are the epochs by which the report compares schemes.
var reportPatterns = []string{"put_flush_lat:8", "scatter_rate", "fence_rate", "pattern16_bw:8192"}

// reportRounds is the number of rounds of schemes.
const reportRounds = 5

// planSchemes compares schemes over TCP, if that is among the devices and no switch sets schemes.
func (r *report) planSchemes(stderr io.Writer) {
	i := slices.IndexFunc(r.o.devices, func(o *runner.Options) bool { return o.Device == device.TCP })
	if i < 0 || r.o.devices[i].Settings.Arranges != "" {
		return
	}
	o := *r.o.devices[i]
	o.Percentiles = false
	schemes.Prepare(&o, reportRounds)
	words := []string{cli.Schemes, "-rounds", fmt.Sprint(reportRounds)}
	r.schemes = &schemes.Table{Command: cli.CommandLine(append(words, reportPatterns...)), Machine: r.Machine, Device: o.Device, Rounds: reportRounds}
	for _, name := range reportPatterns {
		r.steps = append(r.steps, reportStep{about: "schemes of " + name, key: "schemes of " + name, seconds: 4, run: func(ctx context.Context) error {
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

// reportRanks are the numbers of ranks that the report compares, on cards of reportCard.
var reportRanks = []int{4, 16, 64, 256}

const reportCard = "ndr-2024"

func (r *report) planScale() {
	for _, w := range scale.Workloads() {
		g := &scale.Growth{Workload: w.Name, Device: device.Sim + reportCard}
		r.scale = append(r.scale, g)
		for _, n := range reportRanks {
			about := fmt.Sprintf("%s, %s", w.Name, table.Plural(n, "rank"))
			r.steps = append(r.steps, reportStep{about: about, key: about, seconds: float64(n) / 100, run: func(ctx context.Context) error {
				card, err := sim.ByName(reportCard)
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

func (r *report) planPaper() {
	for _, f := range paper.Figures() {
		r.steps = append(r.steps, reportStep{about: "figure " + f.Name(), key: "figure " + f.Name(), seconds: 4, run: func(ctx context.Context) error {
			p, err := f.Reproduce(ctx, &paper.Options{Seed: 1, Timeout: 2 * time.Minute})
			if err == nil {
				r.figures = append(r.figures, p)
			}
			return err
		}})
	}
}

// estimate estimates the time of all steps.
func (r *report) estimate() time.Duration {
	sum := 0.0
	for _, s := range r.steps {
		sum += s.seconds
	}
	return time.Duration(sum * float64(time.Second))
}

// measure runs all steps, and reports before each the estimated remaining time. A step that fails is listed in the
// page, and the next one runs.
func (r *report) measure(ctx context.Context, say func(string)) error {
	rest, began := cli.NewForecast(), time.Now()
	for _, s := range r.steps {
		rest.Add(s.key, s.seconds)
	}
	r.load.Began = machine.LoadAverage()
	defer func() { r.load.Ended, r.took = machine.LoadAverage(), time.Since(began) }()
	for _, s := range r.steps {
		say(fmt.Sprintf("%s; about %v left", s.about, rest.Remaining().Round(time.Second)))
		before := machine.Now()
		err := s.run(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			r.failed = append(r.failed, s.failure(err))
		}
		after := machine.Now()
		if s.late != nil && *s.late {
			rest.Drop(s.key)
		} else {
			rest.Done(s.key, s.seconds, after.At.Sub(before.At))
		}
		if cores, known := after.OthersSince(before); known {
			r.load.Add(s.about, cores)
		}
	}
	return nil
}

// OurFailures returns an error if a cell of ours failed. It has the number of failures, and each cause once. The page
// lists each.
func (r *report) ourFailures() error {
	failed, all, slow := 0, 0, false
	var causes []string
	count := func(c *compare.Column) {
		all++
		if !c.Failed {
			return
		}
		failed++
		cause, _, late := strings.Cut(c.Reason, program.TimeoutFlag)
		if late {
			cause, slow = cause+program.TimeoutFlag, true
		}
		if !strings.HasPrefix(cause, plan.ErrNotBegun.Error()) && !slices.Contains(causes, cause) {
			causes = append(causes, cause)
		}
	}
	for _, l := range r.lines {
		for _, c := range l.cells {
			if l.by == compare.Ours {
				count(&c.Column)
			}
		}
	}
	for _, k := range r.kernels {
		for _, row := range k.Rows {
			count(row.Columns[compare.Ours])
		}
	}
	if failed == 0 && len(r.failed) == 0 {
		return nil
	}
	if failed == 0 {
		return fmt.Errorf("bench: report: failed: %s", strings.Join(r.failed, "; "))
	}
	causes = append(causes, r.failed...)
	if slow {
		causes = append(causes, fmt.Sprintf("-timeout %v allows for a busy machine", 5*r.o.devices[0].Timeout))
	}
	return fmt.Errorf("bench: report: %d of %s failed here: %s", failed, table.Plural(all, "cell"), strings.Join(causes, "; "))
}
