package report

import (
	"context"
	"errors"
	"fmt"
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
	"github.com/onesided/rma/bench/internal/stats"
	"github.com/onesided/rma/bench/internal/table"
)

// A report holds the measurements of a report.
type report struct {
	o       *options
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

	lines   []*line
	schemes *schemes.Table
	scale   []*scale.Growth
	figures []*paper.Plot
	kernels []*kernelReport
	// noKernels says why there are no kernels. It is "" if they are not requested.
	noKernels string
	steps     []step
}

// name returns the name of the line in a legend.
func (l *line) name() string {
	if l.by == compare.Ours {
		return l.device
	}
	return l.device + ", " + l.by
}

func (l *line) benchCase() *cases.Case { return l.job.Cells[0].Case }

// failure returns a line about the step's failure. The error of a step may begin with the step's name.
func (s *step) failure(err error) string {
	if text := cli.Cause(err); strings.HasPrefix(text, s.about) {
		return text
	}
	return s.about + ": " + cli.Cause(err)
}

func newReport(o *options, command string) *report {
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

// take measures the line in a round.
func (l *line) take(ctx context.Context, round int) error {
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
				c.distributions[round] = r.Percentiles
			}
		}
	}
	if ended {
		return context.Cause(ctx)
	}
	return nil
}

// seconds estimates the time of a round of the line: starting the ranks, and a loop for each of loops, the
// warm-ups and the percentiles.
func (l *line) seconds() float64 {
	start, iteration, rate := 0.3, 0.5e-6, 8e9
	if l.device == device.TCP {
		iteration, rate = 12e-6, 2e9
	}
	sum := start
	for _, c := range l.cells {
		if c.Case.Iterations == nil {
			sum++
			continue
		}
		bytes := float64(c.Size)
		if c.Case.Unit == stats.MegabytesPerSecond {
			bytes *= cases.InFlight
		}
		sum += float64(c.Case.Iterations(c.Size)) * (iteration + bytes/rate) * (loops + 1) * 1.1
	}
	return sum
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
func (r *report) measure(ctx context.Context, show func(string)) error {
	rest, began := cli.NewForecast(), time.Now()
	for _, s := range r.steps {
		rest.Add(s.key, s.seconds)
	}
	r.load.Began = machine.LoadAverage()
	defer func() { r.load.Ended, r.took = machine.LoadAverage(), time.Since(began) }()
	for _, s := range r.steps {
		show(fmt.Sprintf("%s; about %v left", s.about, rest.Remaining().Round(time.Second)))
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
