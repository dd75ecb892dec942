package compare

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/bench/internal/cli"
	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/bench/internal/golden"
	"github.com/onesided/rma/bench/internal/machine"
	"github.com/onesided/rma/bench/internal/plan"
	"github.com/onesided/rma/bench/internal/plan/plantest"
	"github.com/onesided/rma/bench/internal/program"
	"github.com/onesided/rma/bench/internal/stats"
)

func sharedScript(t *testing.T) *Table {
	t.Helper()
	jobs := []plan.Job{plantest.Job(t, "put_flush_lat:8,1024", "cas_lat", "put_bw:65536", "scatter_rate"), plantest.Job(t, "create_time:64"), plantest.Job(t, "idle_cpu:2")}
	all := []Library{
		Library{Ours, plantest.Scripted(map[string][]float64{
			"put_flush_lat:8": {0.011, 0.013, 0.012}, "put_flush_lat:1024": {0.03, 0.031, 0.032}, "cas_lat:8": {0.1, 0.1, 0.1},
			"put_bw:65536": {60000, 61000, 55000}, "scatter_rate:1000": {100, 120, 140}, "create_time:64": {90000, 95000, 91000}, "idle_cpu:2": {0.4, 0.5, 2.5},
		}, nil)},
		Library{"openmpi", plantest.Scripted(map[string][]float64{
			"put_flush_lat:8": {0.024, 0.023, 0.022}, "put_flush_lat:1024": {0.029, 0.03, 0.029},
			"put_bw:65536": {55000, 54000, 55006}, "scatter_rate:1000": {16, 16.1, 15.9}, "create_time:64": {40000, 41000, 40500}, "idle_cpu:2": {99.5, 99.8, 99.9},
		}, map[string]error{"cas_lat": errors.New("signal 11 (Segmentation fault)")})},
		Library{"mpich", plantest.Scripted(map[string][]float64{
			"put_flush_lat:8": {0.25, 0.24, 0.26}, "put_flush_lat:1024": {0.3, 0.31, 0.3}, "cas_lat:8": {0.4, 0.41, 0.38},
			"put_bw:65536": {24000, 24500, 24700}, "scatter_rate:1000": {7.5, 7.6, 7.7}, "idle_cpu:2": {98.5, 98.8, 98.9},
		}, map[string]error{"create_time": program.ErrTimeout})},
	}
	c := &Table{
		Command: cli.CommandLine([]string{"-peers", "-size", "8 16"}),
		Machine: machine.Machine{CPU: "Some CPU", Cores: 2, System: "linux 6.1 amd64", Go: "go1.26"},
		Ours:    "device shm", Peers: []string{"Open MPI 4.1.4", "MPICH 4.0.2"}, Rounds: 3, Repeat: 5,
		Columns: []string{Ours, "openmpi", "mpich"},
	}
	var err error
	c.Rows, err = Run(t.Context(), device.Shm, jobs, all, 3, func(string) {})
	require.NoError(t, err)
	return c
}

// tcpScript returns a table over TCP. Its goals are ratios to socket cases; one cell has two goals, and one goal cannot
// be judged.
func tcpScript(t *testing.T) *Table {
	t.Helper()
	jobs := []plan.Job{plantest.Job(t, "put_flush_lat:8,1024", "cas_lat", "get_flush_lat:8", "put_bw:65536", "passive_put_lat"), plantest.Job(t, "socket_bw:65536")}
	all := []Library{
		Library{Ours, plantest.Scripted(map[string][]float64{
			"put_flush_lat:8": {9}, "put_flush_lat:1024": {10}, "cas_lat:8": {10}, "get_flush_lat:8": {9}, "put_bw:65536": {2500},
			"passive_put_lat:8": {25}, "socket_lat:8": {8, 8.2}, "socket_bw:65536": {3000, 3100},
		}, nil)},
		Library{"openmpi", plantest.Scripted(map[string][]float64{
			"put_flush_lat:8": {9.6}, "put_flush_lat:1024": {9.8}, "get_flush_lat:8": {18}, "put_bw:65536": {2000}, "passive_put_lat:8": {990000},
		}, map[string]error{"cas_lat": errors.New("signal 11 (Segmentation fault)")})},
	}
	c := &Table{
		Command: cli.CommandLine([]string{"-device", "tcp", "-peers"}),
		Machine: machine.Machine{CPU: "Some CPU", Cores: 1, System: "linux 6.1 amd64", Go: "go1.26"},
		Ours:    "device tcp", Peers: []string{"Open MPI 4.1.4 over TCP"}, Rounds: 1, Repeat: 5,
		Columns: []string{Ours, "openmpi"},
	}
	var err error
	c.Rows, err = Run(t.Context(), device.TCP, jobs, all, 1, func(string) {})
	require.NoError(t, err)
	return c
}

func TestTheTableShowsMediansRatiosAndGoals(t *testing.T) {
	for file, c := range map[string]*Table{"table.golden": sharedScript(t), "table_tcp.golden": tcpScript(t)} {
		var text strings.Builder
		require.NoError(t, c.WriteText(&text))
		golden.Check(t, "testdata/"+file, text.String())
	}
}

func TestTheTableAsJSONHasTheSpread(t *testing.T) {
	for file, c := range map[string]*Table{"table.json.golden": sharedScript(t), "table_tcp.json.golden": tcpScript(t)} {
		var text strings.Builder
		require.NoError(t, c.WriteJSON(&text))
		golden.Check(t, "testdata/"+file, text.String())
	}
}

func TestALibraryThatIsTooSlowDoesNotRunAgain(t *testing.T) {
	runs := 0
	slow := Library{"mpich", func(context.Context, plan.Job) ([]plan.Result, error) { runs++; return nil, program.ErrTimeout }}
	quick := Library{Ours, plantest.Scripted(map[string][]float64{"fop_lat:8": {1, 1, 1}}, nil)}
	rows, err := Run(t.Context(), device.Shm, []plan.Job{plantest.Job(t, "fop_lat")}, []Library{quick, slow}, 3, func(string) {})
	require.NoError(t, err)
	assert.Equal(t, 1, runs)
	assert.Equal(t, []float64{1, 1, 1}, rows[0].Columns[Ours].Known())
	assert.Nil(t, rows[0].Ratio.Median)
}

func TestTheForecastOmitsALibraryThatIsTooSlow(t *testing.T) {
	slow := Library{Ours, func(context.Context, plan.Job) ([]plan.Result, error) { return nil, program.ErrTimeout }}
	_, err := Run(t.Context(), device.Shm, []plan.Job{plantest.Job(t, "fop_lat")}, []Library{slow}, 3, func(line string) { assert.NotContains(t, line, "left") })
	require.NoError(t, err)
}

func TestARunThatIsCompleteWhenTheComparisonEndsIsNotMissing(t *testing.T) {
	for values, want := range map[int][]string{
		3: {"of round 1: cas_lat by ours", "all of round 2"},
		1: {"of round 1: the rest of put_bw by ours, cas_lat by ours", "all of round 2"},
		0: {"all of round 1", "all of round 2"},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		cut := Library{Ours, func(_ context.Context, j plan.Job) ([]plan.Result, error) {
			cancel()
			var results []plan.Result
			for _, one := range j.Cells[:values] {
				results = append(results, plan.NewResult(one, 2, []float64{1}))
			}
			return results, ctx.Err()
		}}
		_, err := Run(ctx, device.Shm, []plan.Job{plantest.Job(t, "put_bw:8,64,512", "cas_lat")}, []Library{cut}, 2, func(string) {})
		var ended *endedError
		require.ErrorAs(t, err, &ended)
		assert.Equal(t, want, ended.lacks)
	}
}

// A run that is cut counts for the cells that it completed. A note says in how many rounds such a cell has no value.
func TestCellsThatACutRunDidNotBeginSaySo(t *testing.T) {
	for _, test := range []struct {
		err    error
		begun  string
		reason string
	}{
		{fmt.Errorf("%w: 2m0s (-timeout): put_bw of size 64", program.ErrTimeout), "not done in time: 2m0s (-timeout): put_bw of size 64", "not begun: the time of its job was over"},
		{errors.New("signal 11"), "signal 11", "not begun: its job failed at put_bw:64"},
	} {
		cut := Library{Ours, func(_ context.Context, j plan.Job) ([]plan.Result, error) {
			return []plan.Result{plan.NewResult(j.Cells[0], 2, []float64{1})}, test.err
		}}
		rows, err := Run(t.Context(), device.Shm, []plan.Job{plantest.Job(t, "put_bw:8,64,512")}, []Library{cut}, 3, func(string) {})
		require.NoError(t, err)
		assert.Equal(t, test.begun, rows[1].Columns[Ours].Reason)
		assert.Equal(t, test.reason, rows[2].Columns[Ours].Reason)
		if errors.Is(test.err, program.ErrTimeout) {
			assert.Equal(t, []string{"put_bw:8: no further run: its job was not done in time (in 2 of 3 rounds)"}, AddNote(nil, "put_bw:8", rows[0].Columns[Ours], 3))
		}
	}
}

func TestTheBetterPeerIsChosenInEachRound(t *testing.T) {
	for _, test := range []struct {
		name                 string
		ours, openmpi, mpich []float64
		better               []string
		ratio                []float64
	}{
		{"put_flush_lat:8", []float64{6, 6, 6}, []float64{8, 12, 12}, []float64{12, 10, 12}, []string{"openmpi", "mpich", "mpich"}, []float64{6. / 8, 6. / 10, 6. / 12}},
		{"put_bw:8", []float64{6, 6, 6}, []float64{8, 12, 12}, []float64{12, 10, 12}, []string{"mpich", "openmpi", "mpich"}, []float64{6. / 12, 6. / 12, 6. / 12}},
	} {
		rows, err := Run(t.Context(), device.Shm, []plan.Job{plantest.Job(t, test.name)}, []Library{
			Library{Ours, plantest.Scripted(map[string][]float64{test.name: test.ours}, nil)},
			Library{"openmpi", plantest.Scripted(map[string][]float64{test.name: test.openmpi}, nil)},
			Library{"mpich", plantest.Scripted(map[string][]float64{test.name: test.mpich}, nil)},
		}, 3, func(string) {})
		require.NoError(t, err)
		assert.Equal(t, test.better, rows[0].Better, test.name)
		assert.Equal(t, test.ratio, rows[0].Ratio.Known(), test.name)
	}
}

func TestARoundOfOnePeerIsComparedWithThat(t *testing.T) {
	runs := 0
	flaky := Library{"openmpi", func(_ context.Context, j plan.Job) ([]plan.Result, error) {
		if runs++; runs == 2 {
			return nil, errors.New("signal 11")
		}
		return []plan.Result{plan.NewResult(j.Cells[0], 2, []float64{4})}, nil
	}}
	for _, test := range []struct {
		name   string
		all    []Library
		ratio  []float64
		better []string
	}{
		{"another peer has a value", []Library{flaky, Library{"mpich", plantest.Scripted(map[string][]float64{"fop_lat:8": {8, 8, 8}}, nil)}}, []float64{0.5, 0.25, 0.5}, []string{"openmpi", "mpich", "openmpi"}},
		{"no other peer has a value", []Library{flaky}, []float64{0.5, 0.5}, []string{"openmpi", "", "openmpi"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			runs = 0
			mine := Library{Ours, plantest.Scripted(map[string][]float64{"fop_lat:8": {2, 2, 2}}, nil)}
			rows, err := Run(t.Context(), device.Shm, []plan.Job{plantest.Job(t, "fop_lat")}, append([]Library{mine}, test.all...), 3, func(string) {})
			require.NoError(t, err)
			assert.Equal(t, test.ratio, rows[0].Ratio.Known())
			assert.Equal(t, test.better, rows[0].Better)

			c := &Table{Rounds: 3, Columns: []string{"openmpi"}, Rows: rows}
			var text strings.Builder
			require.NoError(t, c.WriteText(&text))
			assert.Contains(t, text.String(), "fop_lat 8, openmpi: signal 11 (in 1 of 3 rounds).\n")
		})
	}
}

func TestRoundsGoForwardsAndBackwardsInTurn(t *testing.T) {
	var order []string
	library := func(name string) Library {
		return Library{name, func(_ context.Context, j plan.Job) ([]plan.Result, error) {
			for _, one := range j.Cells {
				order = append(order, name+" "+one.String())
			}
			return nil, nil
		}}
	}
	_, err := Run(t.Context(), device.TCP, []plan.Job{plantest.Job(t, "put_bw:8,65536,1048576", "fop_lat")}, []Library{library(Ours), library("openmpi"), library("mpich")}, 3, func(string) {})
	require.NoError(t, err)
	forwards := []string{
		"ours socket_bw:65536", "ours socket_bw:1048576", "ours put_bw:8", "ours put_bw:65536", "ours put_bw:1048576",
		"openmpi put_bw:8", "openmpi put_bw:65536", "openmpi put_bw:1048576", "mpich put_bw:8", "mpich put_bw:65536", "mpich put_bw:1048576",
		"ours socket_lat:8", "ours fop_lat:8", "openmpi fop_lat:8", "mpich fop_lat:8",
	}
	backwards := []string{
		"mpich put_bw:8", "mpich put_bw:65536", "mpich put_bw:1048576", "openmpi put_bw:8", "openmpi put_bw:65536", "openmpi put_bw:1048576",
		"ours put_bw:8", "ours put_bw:65536", "ours put_bw:1048576", "ours socket_bw:65536", "ours socket_bw:1048576",
		"mpich fop_lat:8", "openmpi fop_lat:8", "ours fop_lat:8", "ours socket_lat:8",
	}
	assert.Equal(t, slices.Concat(forwards, backwards, forwards), order)
}

func TestPeersDoNotRunCasesOfOurOwn(t *testing.T) {
	refusing := Library{"mpich", func(_ context.Context, j plan.Job) ([]plan.Result, error) {
		t.Errorf("a run at %s", j.Cells[0].String())
		return nil, nil
	}}
	quick := Library{Ours, plantest.Scripted(map[string][]float64{"row_rate:1000": {5}, "hashtable_insert_rate:1000": {1}}, nil)}
	rows, err := Run(t.Context(), device.TCP, []plan.Job{plantest.Job(t, "row_rate", "hashtable_insert_rate")}, []Library{quick, refusing}, 1, func(string) {})
	require.NoError(t, err)
	for _, r := range rows {
		assert.NotNil(t, r.Columns[Ours].Median)
		assert.Nil(t, r.Ratio.Median)
	}
}

func TestACancelledComparisonEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	stop := Library{Ours, func(context.Context, plan.Job) ([]plan.Result, error) { cancel(); return nil, ctx.Err() }}
	_, err := Run(ctx, device.Shm, []plan.Job{plantest.Job(t, "fop_lat")}, []Library{stop}, 3, func(string) {})
	assert.ErrorIs(t, err, context.Canceled)
}

// The results that a job gave before it was cancelled count.
func TestACancelledRunCountsAsFarAsItGot(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	stop := Library{Ours, func(_ context.Context, j plan.Job) ([]plan.Result, error) {
		cancel()
		return []plan.Result{plan.NewResult(j.Cells[0], 2, []float64{7})}, ctx.Err()
	}}
	rows, err := Run(ctx, device.Shm, []plan.Job{plantest.Job(t, "put_bw:8,64", "fop_lat")}, []Library{stop}, 2, func(string) {})
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, []float64{7}, rows[0].Columns[Ours].Known())
	assert.Equal(t, &Column{Series: stats.NewSeries(2)}, rows[1].Columns[Ours], "no failure")
	c := &Table{Rounds: 2, Columns: []string{Ours}, Rows: rows}
	c.End(err)
	assert.Equal(t, []string{"of round 1: the rest of put_bw by ours, fop_lat by ours", "all of round 2"}, c.Lacks)
	assert.NoError(t, c.OurFailures())
}

func TestOurOwnFailureIsAnError(t *testing.T) {
	failing := Library{Ours, plantest.Scripted(nil, map[string]error{"fop_lat": errors.New("world: broken")})}
	rows, err := Run(t.Context(), device.Shm, []plan.Job{plantest.Job(t, "fop_lat")}, []Library{failing}, 1, func(string) {})
	require.NoError(t, err)
	c := &Table{Rows: rows}
	assert.EqualError(t, c.OurFailures(), "bench: fop_lat 8 failed here: world: broken")

	failing = Library{Ours, plantest.Scripted(map[string][]float64{"fop_lat:8": {1}}, map[string]error{"socket_lat": errors.New("no ports")})}
	rows, err = Run(t.Context(), device.TCP, []plan.Job{plantest.Job(t, "fop_lat")}, []Library{failing}, 1, func(string) {})
	require.NoError(t, err)
	c = &Table{Rows: rows}
	assert.EqualError(t, c.OurFailures(), "bench: socket_lat 8, measured for fop_lat, failed here: no ports")
}
