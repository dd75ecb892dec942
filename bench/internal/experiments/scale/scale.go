package scale

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/onesided/rma/bench/internal/cli"
	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/bench/internal/table"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/verbs/sim"
	"github.com/onesided/rma/world"
)

// mostSimulated is the greatest number of ranks of scale.
const mostSimulated = 1 << 14

// Options are the command line after that word.
type Options struct {
	workloads []*Workload
	Card      sim.Profile
	ranks     []int
	format    string
	Seed      uint64
	Timeout   time.Duration
}

// parse reads the command line. It writes the help, if requested, to usage.
func parse(args []string, usage io.Writer) (*Options, error) {
	o := new(Options)
	var ranks, deviceName string
	flags := flag.NewFlagSet("bench scale", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&deviceName, "device", device.Sim+"ndr-2024", "the simulated cards: "+device.Sim+" and one of "+strings.Join(sim.Profiles(), ", "))
	flags.StringVar(&ranks, "ranks", "4,16,64,256,1024", fmt.Sprintf("numbers of ranks, each from 2 to %d", mostSimulated))
	flags.StringVar(&o.format, "format", "text", "text, or json: one object a line")
	flags.Uint64Var(&o.Seed, "seed", 1, "the seed of the order of simultaneous events")
	flags.DurationVar(&o.Timeout, "timeout", 10*time.Minute, "the longest that one number of ranks may take, in real time")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(usage, "usage: go run ./bench scale [flags] [workload …]")
		fmt.Fprintln(usage, "Shows how time and memory of a rank grow with the number of ranks, and by which law, in virtual time.")
		fmt.Fprintln(usage, "The workloads; no workload: all of them.")
		for _, w := range Workloads() {
			fmt.Fprintf(usage, "  %-10s %s\n", w.Name, w.about)
		}
		flags.SetOutput(usage)
		flags.PrintDefaults()
		fmt.Fprint(usage, cli.ExitStatuses)
		return nil, err
	case err != nil:
		return nil, cli.Usagef("%v; -h lists the flags", err)
	case o.format != "text" && o.format != "json":
		return nil, cli.Usagef("-format %q: allowed are text and json", o.format)
	case o.Timeout <= 0:
		return nil, cli.Usagef("-timeout %v: more than 0", o.Timeout)
	}
	if !strings.HasPrefix(deviceName, device.Sim) {
		return nil, cli.Usagef("-device %q: scale is in virtual time, allowed are %s and a profile", deviceName, device.Sim)
	}
	if o.Card, err = device.Card(deviceName); err != nil {
		return nil, err
	}
	for field := range strings.SplitSeq(ranks, ",") {
		n, err := strconv.Atoi(field)
		if err != nil || n < 2 || n > mostSimulated {
			return nil, cli.Usagef("-ranks %q: %q is no number from 2 to %d", ranks, field, mostSimulated)
		}
		o.ranks = append(o.ranks, n)
	}
	slices.Sort(o.ranks)
	o.ranks = slices.Compact(o.ranks)
	o.workloads, err = chosen(flags.Args())
	return o, err
}

// chosen returns the workloads that are named, or all.
func chosen(named []string) ([]*Workload, error) {
	all := Workloads()
	var names []string
	for _, w := range all {
		names = append(names, w.Name)
	}
	if err := cli.CheckNamed("workload", named, names); err != nil {
		return nil, err
	}
	if len(named) == 0 {
		return all, nil
	}
	return slices.DeleteFunc(all, func(w *Workload) bool { return !slices.Contains(named, w.Name) }), nil
}

// Run is the run of scale.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	if device.Launched() {
		return cli.Usagef("scale has its ranks in one process: run it without a launcher")
	}
	show, done := cli.Progress(stderr)
	defer done()
	extents, measuring := o.measure(ctx, show)
	done()
	if len(extents) == 0 {
		return measuring
	}
	write := func() error {
		return write(stdout, cli.CommandLine(append([]string{cli.ScaleCommand}, args...)), extents)
	}
	if o.format == "json" {
		write = func() error { return writeJSON(stdout, extents) }
	}
	// The results before an error are written, too.
	return errors.Join(measuring, write())
}

// measure returns the growth of each workload. With an error it returns those before it.
func (o *Options) measure(ctx context.Context, show func(string)) (extents []*Growth, err error) {
	for _, w := range o.workloads {
		g := &Growth{Workload: w.Name, Device: device.Sim + o.Card.Name}
		for _, n := range o.ranks {
			show(fmt.Sprintf("%s, %s", w.Name, table.Plural(n, "rank")))
			p, failure := w.At(ctx, o, n)
			if failure != nil {
				err = fmt.Errorf("bench: scale: %s, %s: %w", w.Name, table.Plural(n, "rank"), failure)
				break
			}
			g.Points = append(g.Points, p)
		}
		if len(g.Points) > 0 {
			g.judge()
			extents = append(extents, g)
		}
		if err != nil {
			return extents, err
		}
	}
	return extents, nil
}

// A Point is a workload on a number of ranks.
type Point struct {
	Ranks int `json:"ranks"`
	// Micros is the virtual time of one iteration, in microseconds.
	Micros float64 `json:"us"`
	// Frames is the number of frames that a rank sends in an iteration.
	Frames float64 `json:"frames"`
	// Bytes is the memory per rank: that of the whole process, including the simulated cards, divided by the number
	// of ranks.
	Bytes float64 `json:"bytes"`
	// EventNanos is the real time of an event of an iteration, in nanoseconds.
	EventNanos float64 `json:"event_ns"`
	// Start is the virtual time in microseconds until the workload is set up, including the first iterations. Most of
	// it is spent on connecting.
	Start float64 `json:"start_us"`
}

// At measures the workload on n ranks.
func (k *Workload) At(ctx context.Context, o *Options, n int) (Point, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, o.Timeout, fmt.Errorf("it takes longer than -timeout %v", o.Timeout))
	defer cancel()
	p := Point{Ranks: n}
	s, err := sim.New(o.Card, o.Seed)
	if err != nil {
		return p, err
	}
	before := memoryNow()
	err = device.Simulate(ctx, s, n, func(ctx context.Context, w *world.World) error {
		return k.measure(ctx, w, s, before, &p)
	})
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return p, err
}

// measure is the body of each rank. Rank 0 records the results.
func (k *Workload) measure(ctx context.Context, w *world.World, s *sim.Simulator, before uint64, p *Point) error {
	iterate, end, err := k.start(ctx, w)
	if err != nil {
		return err
	}
	if err := w.Barrier(ctx); err != nil {
		return err
	}
	// A rank is connected with the ranks that it needs after the first iteration. It has made the eager buffers that
	// it needs at once after some more.
	for range earlierIterations {
		if err := iterate(ctx); err != nil {
			return err
		}
	}
	if err := w.Barrier(ctx); err != nil {
		return err
	}
	set := w.Now()
	sent, events, began, start := job.Of(w).Frames(), s.Events(), time.Now(), w.Now()
	for range measuredIterations {
		if err := iterate(ctx); err != nil {
			return err
		}
	}
	iterations, frames := w.Now()-start, float64(job.Of(w).Frames()-sent)
	// The time of the slowest rank counts, and the frames of all.
	all := []float64{iterations.Seconds() * 1e6 / measuredIterations, set.Seconds() * 1e6}
	if err := world.AllReduce(ctx, w, all, all, func(a, b float64) float64 { return max(a, b) }); err != nil {
		return err
	}
	took, happened := time.Since(began), s.Events()-events
	sums := []float64{frames / measuredIterations}
	if err := world.AllReduce(ctx, w, sums, sums, func(a, b float64) float64 { return a + b }); err != nil {
		return err
	}
	if w.Rank() == 0 {
		n := float64(w.Size())
		p.Micros, p.Start, p.Frames = all[0], all[1], sums[0]/n
		p.Bytes = (float64(memoryNow()) - float64(before)) / n
		p.EventNanos = float64(took.Nanoseconds()) / float64(happened)
	}
	if err := w.Barrier(ctx); err != nil {
		return err
	}
	return end(ctx)
}

// memoryNow returns the memory in use when collections free no more. A pool keeps its memory until the second
// collection. An object with a finalizer or a cleanup is freed by the collection after the one that found it.
func memoryNow() uint64 {
	const little = 4 << 10
	least := uint64(math.MaxUint64)
	for same := 0; same < 2; {
		runtime.GC()
		runtime.Gosched()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		used := m.HeapAlloc + m.StackInuse
		if same++; used+little < least {
			same = 0
		}
		least = min(least, used)
	}
	return least
}
