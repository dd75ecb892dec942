package kernels

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/bench/internal/benchtest"
	"github.com/onesided/rma/bench/internal/compare"
	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/bench/internal/golden"
	"github.com/onesided/rma/bench/internal/peers"
	"github.com/onesided/rma/bench/internal/plan"
	"github.com/onesided/rma/bench/internal/plan/plantest"
	"github.com/onesided/rma/bench/internal/program"
	"github.com/onesided/rma/bench/internal/stats"
	"github.com/onesided/rma/internal/await"
)

func TestRatesArePickedOutOfWhatKernelsPrint(t *testing.T) {
	for _, test := range []struct {
		output, unit string
		want         float64
	}{
		{"rate                      0.0661 GUPS\nwrong                          0 of 1024 words\n", stats.MegaoperationsPerSecond, 66.1},
		{"rate                     56123.4 MFlop/s\niteration                  303 us\n", stats.MegaflopPerSecond, 56123.4},
		{"Parallel Research Kernels version 2.17\nSolution validates\nRate (MFlops/s): 39012.500000  Avg time (s): 0.000484\n", stats.MegaflopPerSecond, 39012.5},
		{"a warning\nSolution validates\nRate (MB/s): 20311.2 Avg time (s): 0.000788\n", stats.MegabytesPerSecond, 20311.2},
		{"Rate (MB/s): 20311.2 Avg time (s): 0.000788\n", stats.MegaflopPerSecond, 0},
		{"rate                           0 GUPS\n", stats.MegaoperationsPerSecond, 0},
		{"rate                        +Inf MB/s\n", stats.MegabytesPerSecond, 0},
		{"rate                        much MB/s\n", stats.MegabytesPerSecond, 0},
		{"ERROR: L1 norm = 1\n", stats.MegaflopPerSecond, 0},
		{"", stats.MegaoperationsPerSecond, 0},
	} {
		got, ok := parseRate(test.output, test.unit)
		assert.InDelta(t, test.want, got, 1e-9, test.output)
		assert.Equal(t, test.want > 0, ok, test.output)
	}
}

// kernelsIn are the options of a command line, with kernels that are over at once.
func kernelsIn(t *testing.T, args ...string) *Options {
	t.Helper()
	o, err := parse(args, io.Discard)
	require.NoError(t, err)
	o.Choose(sizes{log: 10, order: 40, iterations: 2}, o.names())
	return o
}

// waitingScript notes its process in the file pid of dir, and waits.
func waitingScript(dir string) string {
	return "echo $$ >'" + filepath.Join(dir, "pid") + "'; exec sleep 600"
}

// noted is the process that waitingScript noted, 0 if it did not get so far.
func noted(dir string) int {
	text, err := os.ReadFile(filepath.Join(dir, "pid"))
	if err != nil {
		return 0
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return pid
}

// scriptedKernels are beside one peer that has gups, fails at one stencil, and has no other.
func scriptedKernels(t *testing.T) (o *Options, others []*peers.Peer, all []compare.Library) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "stencil.openmpi"), nil, 0o777))
	o, err := parse([]string{"-device", "shm", "-rounds", "2", "-prk", dir}, io.Discard)
	require.NoError(t, err)
	open := compare.Library{Name: "openmpi", Run: plantest.Scripted(map[string][]float64{"gups:22": {7, 9}, "stencil_pscw:1000": {39000, 27000}, "transpose:1000": {20000, 21000}},
		map[string]error{"stencil_fence": errors.New("signal 11 (Segmentation fault)")})}
	mine := compare.Library{Name: compare.Ours, Run: plantest.Scripted(map[string][]float64{"gups:22": {66, 46}, "stencil_pscw:1000": {38000, 26000}, "stencil_fence:1000": {1, 2}, "transpose:1000": {30000, 33000}}, nil)}
	return o, []*peers.Peer{{Name: "openmpi", Title: "Open MPI", Version: "4.1.4"}}, []compare.Library{mine, open}
}

func TestTheTableOfKernelsHasTheSpread(t *testing.T) {
	t.Setenv("GOMAXPROCS", "1")
	o, peers, all := scriptedKernels(t)
	c := o.Table(peers, []string{"MPICH is not installed"})
	var err error
	c.Rows, err = compare.Run(t.Context(), o.Device, o.Jobs(), all, o.Rounds, func(string) {})
	require.NoError(t, err)
	text := new(strings.Builder)
	text.WriteString(strings.Join(Explain(c), "\n") + "\n\n")
	c.WriteTable(text)
	golden.Check(t, "testdata/kernels.golden", text.String())
}

func TestKernelsRunBesideTheirPeers(t *testing.T) {
	dir := t.TempDir()
	found, missing := peers.Find(t.Context())
	for _, p := range peers.Known() {
		benchtest.Script(t, filepath.Join(dir, "stencil."+p.Name), `echo "Rate (MFlops/s): $1$2  Avg time (s): 1"`)
	}
	names := benchtest.SomeOf("gups", "stencil", "transpose")
	// A peer that stands still has the timeout of peers for it. Nothing of ours is held to that.
	o := kernelsIn(t, append([]string{"-device", "tcp", "-rounds", "1", "-peer-timeout", "5s", "-prk", dir}, names...)...)
	var stdout, stderr strings.Builder
	require.NoError(t, o.run(t.Context(), "go run ./bench kernels", &stdout, &stderr), "%s", &stderr)
	for _, name := range names {
		assert.Regexp(t, `(?m)^`+name+`(_pscw|_fence)? +\d+  (Mop|MB|MFlop)/s +[\d.]+ `, stdout.String())
	}
	for _, p := range found {
		stands := false
		for _, cell := range []string{"gups 10", "stencil_pscw 40", "stencil_fence 40"} {
			if _, why, lacks := strings.Cut(stdout.String(), cell+", "+p.Name+": "); lacks {
				// Now and then a peer stands still, or begins late. Anything else is a fault of ours.
				assert.True(t, strings.HasPrefix(why, program.ErrTimeout.Error()), stdout.String())
				stands = stands || cell != "gups 10"
			}
		}
		if slices.Contains(names, "stencil") && !stands {
			assert.Regexp(t, `(?m)^stencil_(pscw|fence) +40  MFlop/s +[\d.]+ .*\b240\.0 +.*\d\.\d\d$`, stdout.String())
		}
		if slices.Contains(names, "transpose") {
			assert.Contains(t, stdout.String(), "transpose 40, "+p.Name+": there is no transpose."+p.Name+" in "+dir)
		}
		assert.Contains(t, stdout.String(), p.Title+" "+p.Version+" over TCP")
	}
	for _, one := range missing {
		assert.Contains(t, stdout.String(), one+".\n")
	}
}

func TestAKernelThatFailsOrHangsIsALine(t *testing.T) {
	dir := t.TempDir()
	benchtest.Script(t, filepath.Join(dir, "mpirun"), `shift 2; exec "$@"`)
	// stencil runs a script as the peer's kernel.
	stencil := func(lines string, timeout time.Duration) ([]plan.Result, error) {
		benchtest.Script(t, filepath.Join(dir, "stencil.mpich"), lines)
		o := kernelsIn(t, "-prk", dir)
		o.PeerTimeout = timeout
		p := &peers.Peer{Name: "mpich", Runner: filepath.Join(dir, "mpirun"), Programs: make(map[string]string)}
		return o.Libraries("", []*peers.Peer{p})[1].Run(t.Context(), o.Jobs()[1])
	}
	results, err := stencil("echo no luck >&2; exit 3", await.Limit)
	assert.Empty(t, results)
	assert.ErrorContains(t, err, "exit status 3: no luck")

	results, err = stencil("echo Rate unknown", await.Limit)
	assert.Empty(t, results)
	assert.ErrorIs(t, err, program.ErrNoResult)

	// The time is long enough for the script to begin to wait.
	for timeout := 50 * time.Millisecond; noted(dir) == 0; timeout *= 2 {
		require.Less(t, timeout, await.Limit)
		results, err = stencil(waitingScript(dir), timeout)
		assert.Empty(t, results)
		require.ErrorIs(t, err, program.ErrTimeout)
		assert.ErrorContains(t, err, fmt.Sprint("not done in time: ", timeout))
	}
	process, err := os.FindProcess(noted(dir))
	require.NoError(t, err)
	assert.ErrorIs(t, process.Signal(syscall.Signal(0)), os.ErrProcessDone)
}

func TestKernelsAreAloneWithoutTheirPeers(t *testing.T) {
	o := kernelsIn(t)
	text := new(strings.Builder)
	o.Table(nil, nil).WriteTable(text)
	assert.Contains(t, text.String(), "-prk DIR")
	refusing := compare.Library{Name: "mpich", Run: plantest.Scripted(map[string][]float64{"gups:10": {1}}, map[string]error{"transpose": errors.New("a run")})}
	mine := compare.Library{Name: compare.Ours, Run: plantest.Scripted(map[string][]float64{"gups:10": {2}, "stencil_pscw:40": {1}, "stencil_fence:40": {1}, "transpose:40": {1}}, nil)}
	rows, err := compare.Run(t.Context(), o.Device, o.Jobs(), []compare.Library{mine, refusing}, 1, func(string) {})
	require.NoError(t, err)
	assert.Equal(t, 2.0, *rows[0].Ratio.Median)
	assert.Nil(t, rows[3].Ratio.Median)
	assert.Empty(t, rows[3].Columns["mpich"].Reason)
}

func TestAPeerThatCannotCompileAKernelIsLeftOut(t *testing.T) {
	dir := t.TempDir()
	// TestKernelsRunBesideTheirPeers builds our own kernels.
	benchtest.Script(t, filepath.Join(dir, "go"), "echo "+dir)
	t.Setenv("PATH", dir)
	able, unable := filepath.Join(dir, "able"), filepath.Join(dir, "unable")
	benchtest.Script(t, able, "exit 0")
	benchtest.Script(t, unable, "echo no compiler >&2; exit 1")
	openmpi := &peers.Peer{Name: "openmpi", Title: "Open MPI", Compiler: able, Programs: make(map[string]string)}
	mpich := &peers.Peer{Name: "mpich", Title: "MPICH", Compiler: unable, Programs: make(map[string]string)}
	built, missing, err := Build(t.Context(), dir, []string{Names[0]}, []*peers.Peer{mpich, openmpi})
	require.NoError(t, err)
	assert.Equal(t, []*peers.Peer{openmpi}, built)
	require.Len(t, missing, 1)
	assert.Regexp(t, `(?s)^MPICH is left out: .*unable.*no compiler$`, missing[0])
}

func TestKernelsNeedTheSource(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("GOFLAGS", "-mod=mod")
	t.Setenv("GOWORK", "off")
	_, _, err := Build(t.Context(), ".", Names, nil)
	require.ErrorIs(t, err, errNoSource)
}

func TestKernelsShareMemoryUnlessAsked(t *testing.T) {
	t.Setenv(device.Variable, device.TCP)
	o, err := parse(nil, io.Discard)
	require.NoError(t, err)
	assert.Equal(t, device.Shm, o.Device)
}

// The goals of kernels are of their usual sizes.
func TestKernelsHaveGoals(t *testing.T) {
	for _, device := range Devices {
		o := &Options{Device: device, Ranks: 2}
		o.Choose(UsualSizes(device), nil)
		for _, b := range compare.Prepare(device, o.Jobs(), []compare.Library{{Name: compare.Ours}}, 1) {
			for _, r := range b.Rows {
				assert.Len(t, r.Goals, 1, "%s:%d over %s", r.Case, r.Size, device)
			}
		}
	}
}
