package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/onesided/rma/bench/internal/chart"
	"github.com/onesided/rma/bench/internal/cli"
	"github.com/onesided/rma/bench/internal/experiments/scale"
	"github.com/onesided/rma/bench/internal/experiments/schemes"
	"github.com/onesided/rma/bench/internal/plan"
	"github.com/onesided/rma/bench/internal/stats"
	"github.com/onesided/rma/bench/internal/table"
)

// A file is a file of the report. A plot also has its case and the command that measures that.
type file struct {
	name, text     string
	title, command string
	of             string // the case
}

// caseLines returns the lines of each case, in the order of the cases.
func (r *report) caseLines() [][]*line {
	var all [][]*line
	for _, l := range r.lines {
		if last := len(all) - 1; last >= 0 && all[last][0].benchCase().Name == l.benchCase().Name {
			all[last] = append(all[last], l)
		} else {
			all = append(all, []*line{l})
		}
	}
	return all
}

// plots draws all plots.
func (r *report) plots() []file {
	var files []file
	for _, lines := range r.caseLines() {
		c := lines[0].benchCase()
		if len(lines[0].cells) > 1 {
			files = appendChart(files, c.Name, c.Name+" over size", r.commandOf(lines, false), c.Name, sizeChart(lines))
		}
		title := c.Name + ": how its times are distributed"
		files = appendChart(files, c.Name+"-percentiles", title, r.commandOf(lines, true), c.Name, percentileChart(lines))
	}
	if r.schemes != nil {
		files = appendChart(files, "schemes", "Schemes of the planner, on and off", r.schemes.Command, "", schemesChart(r.schemes.Complete()))
	}
	ranks := strings.Trim(strings.ReplaceAll(fmt.Sprint(numbersOfRanks), " ", ","), "[]")
	files = appendChart(files, "scale", "Time of an iteration by the number of ranks", cli.CommandLine([]string{cli.ScaleCommand, "-ranks", ranks}), "", scaleChart(r.scale))
	for _, p := range r.figures {
		command := cli.CommandLine([]string{cli.PaperCommand, "-svg", "DIR", p.Name()})
		files = append(files, file{name: "paper-" + p.Name() + ".svg", text: p.SVG(), title: p.Title, command: command})
	}
	return files
}

func appendChart(files []file, name, title, command, of string, c *chart.Chart) []file {
	if c == nil {
		return files
	}
	c.Title = title
	return append(files, file{name: name + ".svg", text: c.SVG(), title: title, command: command, of: of})
}

// commandOf returns the command that measures the lines of a case, or the percentiles at the first size, without a
// report.
func (r *report) commandOf(lines []*line, percentiles bool) string {
	var sizes []string
	for _, c := range lines[0].cells {
		sizes = append(sizes, fmt.Sprint(c.Size))
	}
	var commands []string
	for _, o := range r.o.devices {
		args := []string{"-device", o.Device, "-repeat", fmt.Sprint(loops)}
		switch {
		case percentiles:
			args, sizes = append(args, "-percentiles"), sizes[:1]
		case len(r.peers) > 0:
			args = append(args, "-peers", "-rounds", fmt.Sprint(r.o.rounds))
		}
		for _, text := range o.Settings.Given {
			args = append(args, "-set", text)
		}
		commands = append(commands, cli.CommandLine(append(args, lines[0].benchCase().Name+":"+strings.Join(sizes, ","))))
	}
	return strings.Join(commands, "; ")
}

// sizeChart plots the value of a case over size, with the lowest and the highest of the rounds.
func sizeChart(lines []*line) *chart.Chart {
	first := lines[0].benchCase()
	better := "less is better"
	if first.MoreIsBetter() {
		better = "more is better"
	}
	of := "one round"
	if len(lines[0].cells[0].Values) > 1 {
		of = "median of the rounds, in a band from their lowest to their highest"
	}
	c := &chart.Chart{Note: of + "; " + better, XLabel: "size", YLabel: first.Unit, Below: []string{first.About}}
	for _, l := range lines {
		curve := chart.Curve{Name: l.name()}
		for _, cell := range l.cells {
			if cell.Median == nil || *cell.Median <= 0 {
				continue
			}
			curve.Points = append(curve.Points, chart.Point{
				X: float64(cell.Size), Y: *cell.Median, Low: *cell.Min, High: *cell.Max,
				Hover: fmt.Sprintf("%s, %s: %s %s (%s to %s)", l.name(), chart.ByteUnits(float64(cell.Size)), table.Value(cell.Median), first.Unit, table.Value(cell.Min), table.Value(cell.Max)),
			})
		}
		c.Curves = append(c.Curves, curve)
	}
	if !c.FitAxes(chart.ByteUnits, chart.PlainNumber) {
		return nil
	}
	return c
}

// percentileChart plots the distribution of a case's times at its first size. At x, one in x times exceeds the value.
func percentileChart(lines []*line) *chart.Chart {
	const most = 10000
	first := lines[0].benchCase()
	size := lines[0].cells[0].Size
	c := &chart.Chart{Note: fmt.Sprintf("%s; medians of the rounds, but for max, which is the highest", chart.ByteUnits(float64(size))), XLabel: "percentile", YLabel: first.Unit}
	for _, l := range lines {
		curve := chart.Curve{Name: l.name()}
		p := l.cells[0].percentiles()
		if p == nil || p.P50 <= 0 {
			continue
		}
		if p.Batch > 1 {
			curve.Name += fmt.Sprintf(" (means of %d operations, timed together)", p.Batch)
		}
		for _, one := range p.All() {
			x := float64(most)
			if one.Beyond > 0 {
				x = 1 / one.Beyond
			}
			curve.Points = append(curve.Points, chart.Point{X: x, Y: one.Value, Hover: fmt.Sprintf("%s, %s: %s %s", l.name(), one.Name, table.Value(&one.Value), first.Unit)})
		}
		c.Curves = append(c.Curves, curve)
	}
	format := func(x float64) string {
		if x == most {
			return "max"
		}
		return fmt.Sprintf("%.4g %%", 100-100/x)
	}
	if !c.FitAxes(format, chart.PlainNumber) {
		return nil
	}
	c.X.Marks = []float64{2, 10, 100, 1000, most}
	return c
}

// percentiles returns the medians of the rounds' percentiles. max is the highest of the rounds.
func (c *cell) percentiles() *stats.Percentiles {
	all := slices.DeleteFunc(slices.Clone(c.distributions), func(p *stats.Percentiles) bool { return p == nil })
	if len(all) == 0 {
		return nil
	}
	of := func(pick func(p *stats.Percentiles) float64) float64 {
		var values []float64
		for _, p := range all {
			values = append(values, pick(p))
		}
		return stats.Median(values)
	}
	together := &stats.Percentiles{
		P50: of(func(p *stats.Percentiles) float64 { return p.P50 }), P90: of(func(p *stats.Percentiles) float64 { return p.P90 }),
		P99: of(func(p *stats.Percentiles) float64 { return p.P99 }), P999: of(func(p *stats.Percentiles) float64 { return p.P999 }),
	}
	for _, p := range all {
		together.Max, together.Batch = max(together.Max, p.Max), max(together.Batch, p.Batch)
		together.Count += p.Count
	}
	return together
}

// schemesChart has a position on the x axis for each scheme.
func schemesChart(patterns [][]plan.Result) *chart.Chart {
	c := &chart.Chart{Note: "time taken to that of the best fixed scheme of the same round: medians, and their extent; less is better", XLabel: "scheme: adaptive; all ways; all but the one named, early to getsfirst; at-once, none", YLabel: "ratio"}
	for k, p := range patterns {
		// Patterns are drawn side by side.
		curve, aside := chart.Curve{Name: p[0].Cell(), Apart: true}, 0.14*(float64(k)-float64(len(patterns)-1)/2)
		for i, one := range p {
			if m := one.Ratio; m.Median != nil {
				curve.Points = append(curve.Points, chart.Point{
					X: float64(i+1) + aside, Y: *m.Median, Low: *m.Min, High: *m.Max,
					Hover: fmt.Sprintf("%s, %s: %s", one.Cell(), one.Scheme, table.Ratio(m.Median)),
				})
			}
		}
		c.Curves = append(c.Curves, curve)
	}
	names := schemes.All()
	if !c.FitAxes(func(x float64) string { return strings.TrimSuffix(names[int(x)-1].Name, "=off") }, chart.PlainNumber) {
		return nil
	}
	// Half a position is left free at both ends.
	c.X.Logarithmic, c.X.Low, c.X.High = false, 0.5, float64(len(names))+0.5
	for i := range names {
		c.X.Marks = append(c.X.Marks, float64(i+1))
	}
	return c
}

// scaleChart plots the time of workloads over the number of ranks.
func scaleChart(all []*scale.Growth) *chart.Chart {
	c := &chart.Chart{Note: "in virtual time, on cards of profile " + card + "; less is better", XLabel: "ranks", YLabel: stats.Microseconds}
	for _, g := range all {
		curve := chart.Curve{Name: g.Workload}
		for _, p := range g.Points {
			curve.Points = append(curve.Points, chart.Point{X: float64(p.Ranks), Y: p.Micros, Hover: fmt.Sprintf("%s, %s: %.2f us", g.Workload, table.Plural(p.Ranks, "rank"), p.Micros)})
		}
		c.Curves = append(c.Curves, curve)
	}
	if !c.FitAxes(chart.PlainNumber, chart.PlainNumber) {
		return nil
	}
	for _, n := range numbersOfRanks {
		if float64(n) <= c.X.High {
			c.X.Marks = append(c.X.Marks, float64(n))
		}
	}
	return c
}
