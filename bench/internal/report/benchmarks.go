package report

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/onesided/rma/bench/internal/cases"
	"github.com/onesided/rma/bench/internal/compare"
	"github.com/onesided/rma/bench/internal/stats"
)

// benchmarks returns the results in the format of Go's benchmarks, one line for each round of a cell.
func (r *report) benchmarks() string {
	var b strings.Builder
	fmt.Fprintf(&b, "goos: %s\ngoarch: %s\npkg: github.com/onesided/rma/bench\ncpu: %s\n", runtime.GOOS, runtime.GOARCH, r.Machine.CPU)
	for _, l := range r.lines {
		for _, c := range l.cells {
			for round, v := range c.Values {
				if v != nil {
					fmt.Fprintf(&b, "%s\t%d\t%s%s\n", benchmarkName(c.Cell, l.device, l.by, r.Procs), c.iterations(), measuredAs(*v, c.Case.Unit, ""), c.percentilesAs(round))
				}
			}
		}
	}
	for _, k := range r.kernels {
		for _, row := range k.Rows {
			for _, by := range k.Columns {
				for _, v := range row.Columns[by].Known() {
					fmt.Fprintf(&b, "%s\t1\t%s\n", benchmarkName(row.Cell, k.o.Device, by, r.Procs), measuredAs(v, row.Unit, ""))
				}
			}
		}
	}
	return b.String()
}

// benchmarkName contains the case, the device, the library unless it is this one, and the size.
func benchmarkName(one cases.Cell, device, by string, procs int) string {
	if by == compare.Ours {
		by = ""
	} else {
		by = "/by=" + by
	}
	return fmt.Sprintf("Benchmark%s/device=%s%s/size=%d-%d", camel(one.Case.Name), device, by, one.Size, procs)
}

// camel returns a case's name in the form of a benchmark's.
func camel(name string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(name, "_") {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}

// iterations returns the number of iterations of which a value is the mean.
func (c *cell) iterations() int {
	if c.Case.Iterations == nil {
		return 1
	}
	return c.Case.Iterations(c.Size)
}

// percentilesAs returns the percentiles of a round, each with its own unit.
func (c *cell) percentilesAs(round int) string {
	if c.distributions[round] == nil {
		return ""
	}
	var b strings.Builder
	for _, p := range c.distributions[round].All() {
		b.WriteString("\t" + measuredAs(p.Value, c.Case.Unit, p.Name+"-"))
	}
	return b.String()
}

// measuredAs returns a value in a unit that benchmark tools know.
func measuredAs(v float64, unit, prefix string) string {
	switch unit {
	case stats.Microseconds:
		v, unit = v*1e3, "ns/op"
	case stats.Nanoseconds:
		unit = "ns/op"
	case stats.MegaoperationsPerSecond:
		v, unit = v*1e6, "op/s"
	case stats.Percent:
		unit = "percent"
	}
	return fmt.Sprintf("%.6g %s%s", v, prefix, unit)
}
