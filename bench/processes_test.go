package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/bench/internal/benchtest"
	"github.com/onesided/rma/bench/internal/cli"
	"github.com/onesided/rma/bench/internal/compare"
	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/bench/internal/peers"
	"github.com/onesided/rma/bench/internal/plan"
	"github.com/onesided/rma/bench/internal/program"
	"github.com/onesided/rma/internal/bootstrap/pmi"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/verbs/ibv"
)

func TestRanksAsProcesses(t *testing.T) {
	benchtest.NeedProcesses(t)
	results := measured(t, "-device", "shm", "-repeat", "2", "-set", "sameop=on", "-allocs", "put_flush_lat:8,1024", "fop_lat", "fence_rate", "pscw_both_lat:8", "fence_scale:3,5")
	assert.Len(t, results, 7)
	for cell, ranks := range map[string]int{"put_flush_lat:8": 2, "put_flush_lat:1024": 2, "fop_lat:8": 2, "fence_rate:1000": 2, "pscw_both_lat:8": 2, "fence_scale:3": 3, "fence_scale:5": 5} {
		assert.Equal(t, ranks, results[cell].Ranks, cell)
		assert.Positive(t, results[cell].Value, cell)
	}
	assert.NotNil(t, results["fop_lat:8"].Allocs)
}

func TestRanksOverTCP(t *testing.T) {
	benchtest.NeedProcesses(t)
	results := measured(t, "-device", "tcp", "-repeat", "1", "put_flush_lat:65536", "passive_put_lat", "create_time:3")
	for cell, ranks := range map[string]int{"put_flush_lat:65536": 2, "passive_put_lat:8": 2, "create_time:3": 3} {
		assert.Equal(t, ranks, results[cell].Ranks, cell)
		assert.Positive(t, results[cell].Value, cell)
	}
}

// Ranks over an RDMA card, or else why there are none.
func TestRanksOverACard(t *testing.T) {
	benchtest.NeedProcesses(t)
	if err := ibv.Usable(ibv.FromEnvironment()); err != nil {
		require.ErrorIs(t, err, errors.ErrUnsupported)
		for _, args := range [][]string{{"-device", "ibv", "fop_lat"}, {cli.SchemesCommand, "-device", "ibv", "put_flush_lat:8"}} {
			var stdout, stderr bytes.Buffer
			assert.Equal(t, 1, run(t.Context(), args, &stdout, &stderr))
			assert.Equal(t, "bench: -device ibv: "+err.Error()+"\n", stderr.String())
			assert.Empty(t, stdout.String())
		}
		return
	}
	results := measured(t, "-device", "ibv", "-repeat", "1", "put_bw:65536", "create_time:3")
	for cell, ranks := range map[string]int{"put_bw:65536": 2, "create_time:3": 3} {
		assert.Equal(t, ranks, results[cell].Ranks, cell)
		assert.Positive(t, results[cell].Value, cell)
	}
}

// Processes that make their certificates by themselves know one another.
func TestRanksThatEncrypt(t *testing.T) {
	benchtest.NeedProcesses(t)
	results := measured(t, "-device", "tcp", "-set", "tls=on", "-repeat", "1", "put_flush_lat:65536", "fence_scale:3")
	for cell, ranks := range map[string]int{"put_flush_lat:65536": 2, "fence_scale:3": 3} {
		assert.Equal(t, ranks, results[cell].Ranks, cell)
		assert.Positive(t, results[cell].Value, cell)
	}
}

func TestARankRefusesADeviceThatItDoesNotUse(t *testing.T) {
	benchtest.NeedProcesses(t)
	server := pmi.NewServer(1, pmi.Events{})
	link, environment, err := server.Child(0, 3)
	require.NoError(t, err)
	program, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), program, "-device", "tcp", "fence_scale")
	cmd.ExtraFiles = []*os.File{link}
	cmd.Env = append(device.WithoutLauncher(os.Environ()), append(environment, device.Variable+"="+device.Shm)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	var exit *exec.ExitError
	require.ErrorAs(t, cmd.Run(), &exit)
	require.NoError(t, link.Close())
	require.NoError(t, server.Close())
	assert.Equal(t, 2, exit.ExitCode())
	assert.Equal(t, "bench: -device tcp: the ranks use shm: RMA_DEVICE=\"shm\" in their environment, not \"tcp\"\n", stderr.String())
}

func TestAWaitingProcessIsMeasured(t *testing.T) {
	benchtest.NeedProcesses(t)
	idle := measured(t, "-device", "shm", "idle_cpu")["idle_cpu:2"]
	assert.Equal(t, "%", idle.Unit)
	assert.Empty(t, idle.Skipped)
	assert.GreaterOrEqual(t, idle.Value, 0.0)
}

func TestAProcessThatFailsIsNamed(t *testing.T) {
	benchtest.NeedProcesses(t)
	var stdout, stderr bytes.Buffer
	status := run(t.Context(), []string{"-device", "shm", "-repeat", "1", "-cpuprofile", t.TempDir() + "/no/such/directory", "put_flush_lat:8"}, &stdout, &stderr)
	assert.Equal(t, 1, status)
	assert.Contains(t, stderr.String(), "of 2: exit status 1: ")
	assert.Contains(t, stderr.String(), "-cpuprofile: open")
	assert.Empty(t, stdout.String())
}

func TestProcessesThatTakeTooLongEnd(t *testing.T) {
	benchtest.NeedProcesses(t)
	var stdout, stderr bytes.Buffer
	assert.Equal(t, 1, run(t.Context(), []string{"-device", "shm", "-timeout", "1ms", "put_flush_lat:8"}, &stdout, &stderr))
	assert.Contains(t, stderr.String(), "not done in time: 1ms (-timeout)")
}

func TestRanksShowWhatTheyHaveDone(t *testing.T) {
	benchtest.NeedProcesses(t)
	t.Setenv("RMA_STATS", "-")
	for _, device := range []string{device.Shm, device.TCP} {
		var stdout, stderr bytes.Buffer
		require.Zero(t, run(t.Context(), []string{benchtest.Trial(), "-device", device, "-repeat", "1", "put_flush_lat:8"}, &stdout, &stderr))
		for _, rank := range []string{"rank 0 of 2", "rank 1 of 2"} {
			assert.Contains(t, stderr.String(), rank, device)
		}
	}
}

func TestRanksOfALauncher(t *testing.T) {
	launcher, err := exec.LookPath("mpiexec.hydra")
	if err != nil {
		t.Skip("skipped: no mpiexec.hydra: on Debian, apt-get install mpich")
	}
	executable, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), launcher, "-n", "3", executable, "-format", "json", benchtest.Trial(), "-repeat", "1", "put_flush_lat:8", "fence_scale")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	program.TerminateFirst(cmd)
	output, err := cmd.Output()
	require.NoError(t, err, stderr.String())
	var names []string
	for line := range strings.Lines(string(output)) {
		var r plan.Result
		require.NoError(t, json.Unmarshal([]byte(line), &r))
		assert.Equal(t, 3, r.Ranks)
		names = append(names, r.Case)
	}
	assert.Equal(t, []string{"put_flush_lat", "fence_scale"}, names, "rank 0 speaks, once")
}

func TestPeersAreComparedWithGoroutines(t *testing.T) {
	if runtime.NumCPU() < 2 {
		t.Skip("skipped: the ranks of peers spin while they wait, for minutes where they share a core")
	}
	found, _ := peers.Find(t.Context())
	if len(found) == 0 {
		t.Skip("skipped: no peer is installed: on Debian, apt-get install openmpi-bin libopenmpi-dev mpich libmpich-dev gcc")
	}
	var stdout, stderr bytes.Buffer
	// A case of one of the peers' programs, or of each. They have loops of a fixed length, and most of these take long.
	cells := benchtest.SomeOf("put_flush_lat:8", "fence_scale:2")
	if testsize.N(1) > 1 {
		cells = append(cells, "passive_put_lat")
	}
	status := run(t.Context(), append([]string{"-peers", "-device", "local", "-rounds", "1", "-repeat", "1", "-format", "json"}, cells...), &stdout, &stderr)
	require.Equal(t, 0, status, stderr.String())
	lines := strings.Split(strings.TrimSpace(stdout.String()), "\n")
	require.Len(t, lines, 1+len(cells))
	var circumstances compare.Table
	require.NoError(t, json.Unmarshal([]byte(lines[0]), &circumstances))
	assert.Len(t, circumstances.Peers, len(found))
	for _, line := range lines[1:] {
		var r compare.Row
		require.NoError(t, json.Unmarshal([]byte(line), &r))
		assert.Len(t, r.Columns, 1+len(found))
		for name, c := range r.Columns {
			assert.Len(t, c.Values, 1, "%s by %s: %s", r.Case, name, c.Reason)
		}
		assert.NotNil(t, r.Ratio)
	}
}
