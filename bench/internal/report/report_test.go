package report

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/bench/internal/benchtest"
	"github.com/onesided/rma/bench/internal/cases"
	"github.com/onesided/rma/bench/internal/chart/charttest"
	"github.com/onesided/rma/bench/internal/compare"
	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/bench/internal/golden"
	"github.com/onesided/rma/bench/internal/machine"
	"github.com/onesided/rma/bench/internal/peers"
	"github.com/onesided/rma/bench/internal/plan"
	"github.com/onesided/rma/bench/internal/plan/plantest"
	"github.com/onesided/rma/bench/internal/program"
	"github.com/onesided/rma/bench/internal/runner"
	"github.com/onesided/rma/bench/internal/stats"
)

// scriptedReport returns a report of two cases on two devices, each beside a peer, with scripted values.
func scriptedReport(t *testing.T) *report {
	t.Helper()
	o, err := parse([]string{"-o", "DIR", "-devices", "local,tcp", "-rounds", "2", "put_flush_lat:8,1024,65536", "put_bw:8,1024"}, io.Discard)
	require.NoError(t, err)
	r := newReport(o, "go run ./bench report -o DIR")
	r.Machine = machine.Machine{CPU: "A <fast> & good one", Cores: 2, System: "linux 6.1 amd64", Go: "go1.26"}
	r.Date, r.Procs = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), 2
	r.Peers = []string{"Open MPI 4.1"}
	r.peers = []*peers.Peer{{Name: "openmpi"}}
	require.NoError(t, r.plan(io.Discard))
	for i, l := range r.lines {
		l.run = func(_ context.Context, j plan.Job) ([]plan.Result, error) {
			var results []plan.Result
			for k, one := range j.Cells[:len(j.Cells)-i%2] {
				v := float64(i+1) * float64(10*k+1)
				result := plan.NewResult(one, 2, []float64{v})
				if l.by == compare.Ours && one.Case.HasPercentiles() {
					result.Percentiles = &stats.Percentiles{P50: v, P90: 1.5 * v, P99: 2 * v, P999: 3 * v, Max: 40 * v, Batch: 4, Count: 100}
				}
				results = append(results, result)
			}
			if i%2 == 1 {
				return results, errors.New("the last is too much")
			}
			return results, nil
		}
		require.NoError(t, l.take(t.Context(), 0))
		require.NoError(t, l.take(t.Context(), 1))
		l.cells[0].Set(1, 2**l.cells[0].Values[1])
	}
	return r
}

func TestReportPlots(t *testing.T) {
	var names []string
	var all strings.Builder
	for _, f := range scriptedReport(t).plots() {
		names = append(names, f.name)
		all.WriteString(f.text)
		charttest.Check(t, f.name, f.text)
	}
	assert.Equal(t, []string{"put_flush_lat.svg", "put_flush_lat-percentiles.svg", "put_bw.svg"}, names)
	golden.Check(t, "testdata/report.svg.golden", all.String())
}

var (
	benchmarkLine = regexp.MustCompile(`^Benchmark[A-Z]\w*(/[a-z]+=[\w.]+)*-[1-9]\d*\t[1-9]\d*(\t[0-9.e+-]+ [^\s]+)+$`)
	configLine    = regexp.MustCompile(`^[a-z][^\sA-Z]*: .+$`)
)

func TestReportBenchmarks(t *testing.T) {
	text := scriptedReport(t).benchmarks()
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "Benchmark") {
			assert.Regexp(t, benchmarkLine, line)
		} else {
			assert.Regexp(t, configLine, line)
		}
	}
	_, ofAnyMachine, found := strings.Cut(text, "pkg: ")
	require.True(t, found)
	golden.Check(t, "testdata/report.results.golden", ofAnyMachine)
}

// In results.txt a value has a unit that benchmark tools know. Larger values are better there if they are in the unit of
// the case, and worse otherwise.
func TestReportUnits(t *testing.T) {
	for _, test := range []struct {
		value float64
		unit  string
		want  string
	}{
		{1.5, stats.Microseconds, "1500 ns/op"}, {7, stats.Nanoseconds, "7 ns/op"}, {2, stats.MegaoperationsPerSecond, "2e+06 op/s"}, {3.25, stats.MegabytesPerSecond, "3.25 MB/s"}, {50, stats.Percent, "50 percent"},
	} {
		assert.Equal(t, test.want, measuredAs(test.value, test.unit, ""))
	}
	assert.Equal(t, "1500 p99-ns/op", measuredAs(1.5, stats.Microseconds, "p99-"))
}

func TestReportPage(t *testing.T) {
	r := scriptedReport(t)
	r.Ended = "context canceled"
	text := r.html(r.plots())
	benchtest.CheckXML(t, text)
	for _, part := range []string{
		"A &lt;fast&gt; &amp; good one", "Open MPI 4.1", "put_flush_lat: one put and its flush", "ended early", "context canceled",
		"go run ./bench -device tcp -repeat 2 -peers -rounds 2 put_flush_lat:8,1024,65536", "the last is too much", "<th>p99.9</th>",
		"device tcp, each of 2 ranks with GOMAXPROCS=",
	} {
		assert.Contains(t, text, part)
	}
	assert.NotContains(t, text, "<script")
	assert.NotRegexp(t, `src=|href="[^#]`, text, "it needs nothing else")
}

// The top of the page has the medians, the failures, and the load of the machine.
func TestReportSummary(t *testing.T) {
	r := scriptedReport(t)
	r.took = 65*time.Second + 300*time.Millisecond
	r.load = machine.Load{Began: "0.50", Ended: "2.75"}
	r.load.Add("round 1 of 2: put_bw, tcp", 0.1)
	r.load.Add("round 2 of 2: put_bw, tcp", 1.25)
	r.load.Add("round 2 of 2: put_bw, local", 0.2)
	r.failed = []string{"schemes of fence_rate: no memory"}
	text := r.html(r.plots())
	benchtest.CheckXML(t, text)
	top, _, found := strings.Cut(text, "<figure>")
	require.True(t, found)
	for _, part := range []string{
		"16 of 20 cells of cases have a value of each of 2 rounds; the run took 1m5s.",
		"The load average was 0.50 before the run and 2.75 at its end, the run&#39;s own ranks included, on 2 cores. Other work kept 0.2 cores busy in half of the steps or more, and 1.2 at most (round 2 of 2: put_bw, tcp).",
		"<tr><th>case</th><th>size</th><th>unit</th><th>local</th><th>local, openmpi</th><th>tcp</th><th>tcp, openmpi</th></tr>",
		"<tr><td>put_flush_lat</td><td>8</td><td>us</td><td>1.5000</td>", ">Failures: 5</a>", ">put_bw: ",
		"<li>put_bw:1024, local, openmpi: the last is too much</li>", "<li>schemes of fence_rate: no memory</li>",
	} {
		assert.Contains(t, top, part)
	}
	links := regexp.MustCompile(`href="#(\w+)"`).FindAllStringSubmatch(text, -1)
	assert.Equal(t, strings.Count(text, "<h2"), len(links), "all sections are in the contents")
	for _, link := range links {
		assert.Equal(t, 1, strings.Count(text, `id="`+link[1]+`"`))
	}
	assert.EqualError(t, r.ourFailures(), "bench: report: failed: schemes of fence_rate: no memory")
}

func TestReportGoesOnAfterAStepThatFails(t *testing.T) {
	r := scriptedReport(t)
	taken := 0
	failing := step{"first", "first", 1, func(context.Context) error { taken++; return errors.New("no memory") }, nil}
	r.steps = []step{failing, failing}
	require.NoError(t, r.measure(t.Context(), func(string) {}))
	assert.Equal(t, 2, taken)
	assert.Equal(t, []string{"first: no memory", "first: no memory"}, r.failed)
}

func TestReportNamesWhatFailedOnce(t *testing.T) {
	r := scriptedReport(t)
	failing := func(about, text string) step {
		return step{about, about, 1, func(context.Context) error { return errors.New(text) }, nil}
	}
	r.steps = []step{
		failing("schemes of fence_rate", "bench: schemes of fence_rate:1000: no memory"),
		failing("fence, 4 ranks", "bench: rank 0 of 4: no memory"),
	}
	require.NoError(t, r.measure(t.Context(), func(string) {}))
	assert.Equal(t, []string{"schemes of fence_rate:1000: no memory", "fence, 4 ranks: rank 0 of 4: no memory"}, r.failed)

	var c compare.Column
	j := plantest.Job(t, "fop_lat")
	c.Enter(0, j, j.Cells[0], nil, errors.New("bench: rank 0 of 2: no memory"))
	assert.Equal(t, "rank 0 of 2: no memory", c.Reason)
}

// A library that was too slow does not run again, and the forecast omits it.
func TestReportForecastsWithoutLateRuns(t *testing.T) {
	r := scriptedReport(t)
	late := true
	at := func(context.Context) error { return nil }
	r.steps = []step{{"slow", "slow", 1000, at, &late}, {"quick", "quick", 100, at, nil}, {"slow", "slow", 1000, at, &late}}
	var said []string
	require.NoError(t, r.measure(t.Context(), func(line string) { said = append(said, line) }))
	assert.Equal(t, []string{"slow; about 35m0s left", "quick; about 1m40s left", "slow; about 0s left"}, said)
}

// The program accepts the command below each plot.
func TestCommandsOfPlots(t *testing.T) {
	for _, f := range scriptedReport(t).plots() {
		for command := range strings.SplitSeq(f.command, "; ") {
			args, found := strings.CutPrefix(command, "go run ./bench ")
			require.True(t, found, command)
			o, _, err := runner.Parse(strings.Fields(strings.Replace(args, "-peers -rounds 2 ", "", 1)))
			require.NoError(t, err, command)
			assert.Equal(t, strings.HasSuffix(f.name, "-percentiles.svg"), o.Percentiles, command)
		}
	}
}

// The report of a run that is interrupted has the earlier results, and says that it ended early.
func TestReportThatIsInterrupted(t *testing.T) {
	r := scriptedReport(t)
	r.o.dir = t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	r.steps = []step{
		{"first", "first", 1, func(context.Context) error { cancel(); return nil }, nil},
		{"second", "second", 1, func(ctx context.Context) error { return ctx.Err() }, nil},
		{"third", "third", 1, func(context.Context) error { t.Error("it goes on"); return nil }, nil},
	}
	require.ErrorIs(t, r.finish(r.measure(ctx, func(string) {}), io.Discard), context.Canceled)
	page, err := os.ReadFile(filepath.Join(r.o.dir, "report.html"))
	require.NoError(t, err)
	assert.Contains(t, string(page), "This run ended early, and has only what came before: context canceled")
}

// The error names each cause once, however many cells failed. The page names each cell.
func TestReportNamesEachCauseOnce(t *testing.T) {
	r := scriptedReport(t)
	require.NoError(t, r.ourFailures())
	for _, l := range r.lines {
		l.run = func(_ context.Context, j plan.Job) ([]plan.Result, error) {
			if l.device == device.TCP {
				return nil, errors.New("no memory")
			}
			return nil, fmt.Errorf("%w: %v%s: %s", program.ErrTimeout, 2*time.Minute, program.TimeoutFlag, j.Cells[0].String())
		}
		for _, c := range l.cells {
			c.Column = compare.Column{Series: stats.NewSeries(2)}
		}
		require.NoError(t, l.take(t.Context(), 0))
	}
	assert.EqualError(t, r.ourFailures(), "bench: report: 10 of 10 cells failed here: not done in time: 2m0s (-timeout); no memory; -timeout 10m0s allows for a busy machine")
	assert.Contains(t, leftOut(r.lines), "put_bw:8, local: not done in time: 2m0s (-timeout): put_bw:8")
	assert.Contains(t, leftOut(r.lines), "put_bw:1024, local: not begun: the time of its job was over")
}

func TestReportSizes(t *testing.T) {
	o := &options{}
	assert.Equal(t, []int{8, 32, 128, 512, 2048, 8192, 32768, 131072, 524288, 1 << 20}, o.sizes(cases.ByName("put_bw")))
	o.dense = true
	dense := o.sizes(cases.ByName("acc_flush_lat"))
	assert.Greater(t, len(dense), 150)
	for i, size := range dense {
		assert.Zero(t, size%8)
		if i > 0 {
			assert.Greater(t, size, dense[i-1])
		}
	}
}
