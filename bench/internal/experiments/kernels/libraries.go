package kernels

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/onesided/rma/bench/internal/cases"
	"github.com/onesided/rma/bench/internal/compare"
	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/bench/internal/peers"
	"github.com/onesided/rma/bench/internal/plan"
	"github.com/onesided/rma/bench/internal/program"
	"github.com/onesided/rma/bench/internal/stats"
)

const modulePath = "github.com/onesided/rma"

// errNoSource reports that the kernels' source is missing.
var errNoSource = errors.New("kernels are built from the source of " + modulePath + ": run this inside that module")

// Build builds the commands of kernels into dir, and the peers' programs whose source is ours. It returns the
// peers for which that succeeded, and the reasons why the others are left out.
func Build(ctx context.Context, dir string, names []string, others []*peers.Peer) (built []*peers.Peer, missing []string, err error) {
	packages := []string{modulePath + "/cmd/rmarun"}
	for _, name := range names {
		packages = append(packages, modulePath+"/examples/"+name)
	}
	gups := modulePath + "/examples/" + Names[0]
	source, err := exec.CommandContext(ctx, "go", "list", "-find", "-f", "{{.Dir}}", gups).Output()
	if err != nil {
		return nil, nil, fmt.Errorf("bench: %w (go list %s: %w)", errNoSource, gups, err)
	}
	output, err := exec.CommandContext(ctx, "go", append([]string{"build", "-o", dir}, packages...)...).CombinedOutput()
	if err != nil {
		return nil, nil, fmt.Errorf("bench: go build %s: %w\n%s", strings.Join(packages, " "), err, output)
	}
	if !slices.Contains(names, Names[0]) {
		return others, nil, nil
	}
	for _, p := range others {
		err := p.Compile(ctx, dir, filepath.Join(strings.TrimSpace(string(source)), "peer", "gups.c"))
		switch {
		case ctx.Err() != nil:
			return nil, nil, context.Cause(ctx)
		case err != nil:
			missing = append(missing, peers.LeftOut(p, err))
		default:
			built = append(built, p)
		}
	}
	return built, missing, nil
}

// Jobs returns one job for each kernel.
func (o *Options) Jobs() []plan.Job {
	var jobs []plan.Job
	for _, k := range o.Kernels {
		jobs = append(jobs, plan.Job{Ranks: o.Ranks, Cells: []cases.Cell{k.Cell}})
	}
	return jobs
}

// Libraries returns the libraries that run the kernels; ours are those built in dir.
func (o *Options) Libraries(dir string, peers []*peers.Peer) []compare.Library {
	all := []compare.Library{{Name: compare.Ours, Run: func(ctx context.Context, j plan.Job) ([]plan.Result, error) {
		k := o.kernel(j)
		argv := append([]string{filepath.Join(dir, "rmarun"), "-n", fmt.Sprint(j.Ranks), filepath.Join(dir, k.name)}, k.mine...)
		return o.measure(ctx, j, o.Timeout, argv, append(device.WithoutLauncher(os.Environ()), device.Variable+"="+o.Device))
	}}}
	for _, p := range peers {
		o.find(p)
		all = append(all, compare.Library{Name: p.Name, Run: func(ctx context.Context, j plan.Job) ([]plan.Result, error) {
			k := o.kernel(j)
			if p.Programs[k.name] == "" {
				return []plan.Result{plan.Skipped(k.Cell, j.Ranks, fmt.Sprintf("there is no %s.%s in %s", k.name, p.Name, o.Prk))}, nil
			}
			return o.measure(ctx, j, o.PeerTimeout, p.Command(o.Device, k.name, j.Ranks, k.theirs...), p.Environment(o.Device))
		}})
	}
	return all
}

// find looks for a peer's programs of the Parallel Research Kernels.
func (o *Options) find(p *peers.Peer) {
	for _, name := range Names[1:] {
		program := filepath.Join(o.Prk, name+"."+p.Name)
		if _, err := os.Stat(program); o.Prk != "" && err == nil {
			p.Programs[name] = program
		}
	}
}

// kernel returns the kernel of a job.
func (o *Options) kernel(j plan.Job) *Kernel {
	return o.Kernels[slices.IndexFunc(o.Kernels, func(k *Kernel) bool { return k.Cell == j.Cells[0] })]
}

// measure runs a kernel.
func (o *Options) measure(ctx context.Context, j plan.Job, timeout time.Duration, argv, env []string) ([]plan.Result, error) {
	output, err := program.Run(ctx, argv, env, timeout, 0)
	if err != nil {
		return nil, err
	}
	rate, ok := parseRate(output, j.Cells[0].Case.Unit)
	if !ok {
		return nil, program.ErrNoResult
	}
	return []plan.Result{plan.NewResult(j.Cells[0], j.Ranks, []float64{rate})}, nil
}

// rateLine matches the rate in the output of the examples' commands or of the Parallel Research Kernels.
var rateLine = regexp.MustCompile(`(?m)^(?:rate +(\S+) (\S+)|Rate \((\S+)\): *(\S+))`)

// rateUnits maps the units of rates to units of cases and their factors.
var rateUnits = map[string]struct {
	unit   string
	factor float64
}{"GUPS": {stats.MegaoperationsPerSecond, 1e3}, "MFlop/s": {stats.MegaflopPerSecond, 1}, "MFlops/s": {stats.MegaflopPerSecond, 1}, "MB/s": {stats.MegabytesPerSecond, 1}}

// parseRate finds the rate in the output of a kernel, to which the launcher may have added lines.
func parseRate(output, unit string) (rate float64, ok bool) {
	for _, found := range rateLine.FindAllStringSubmatch(output, -1) {
		as := rateUnits[found[2]+found[3]]
		rate, err := strconv.ParseFloat(found[1]+found[4], 64)
		if err == nil && as.unit == unit && rate > 0 && !math.IsInf(rate, 0) {
			return rate * as.factor, true
		}
	}
	return 0, false
}
