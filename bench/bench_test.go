package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/bench/internal/benchtest"
	"github.com/onesided/rma/bench/internal/cases"
	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/bench/internal/experiments/schemes"
	"github.com/onesided/rma/bench/internal/plan"
	"github.com/onesided/rma/bench/internal/runner"
	"github.com/onesided/rma/bench/internal/toggles"
)

// TestMain lets the ranks that tests start be this program.
func TestMain(m *testing.M) {
	if device.Launched() || runner.AtSocket() {
		main()
	}
	os.Exit(m.Run())
}

// measured returns the results that the program prints, by cell. Its loops are short unless args says otherwise.
func measured(t *testing.T, args ...string) map[string]plan.Result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	status := run(t.Context(), append([]string{"-format", "json", benchtest.Trial()}, args...), &stdout, &stderr)
	require.Equal(t, 0, status, stderr.String())
	results := make(map[string]plan.Result)
	for decoder := json.NewDecoder(&stdout); ; {
		var r plan.Result
		err := decoder.Decode(&r)
		if err == io.EOF {
			return results
		}
		require.NoError(t, err)
		results[fmt.Sprintf("%s:%d", r.Case, r.Size)] = r
	}
}

func TestEveryCaseRunsOnGoroutines(t *testing.T) {
	args := []string{"-device", "local", "-repeat", "1"}
	var want []string
	for _, c := range cases.All() {
		switch {
		case c.Kind == cases.Raw:
			// It has no ranks.
		case c.Kind == cases.Alone && c.Name != "idle_cpu":
			args, want = append(args, c.Name+":3"), append(want, c.Name+":3")
		case c.Limit > 0:
			args = append(args, c.Name+":8,65536")
			want = append(want, c.Name+":8", c.Name+":65536")
		default:
			args, want = append(args, c.Name), append(want, (cases.Cell{Case: c, Size: c.Sizes[0]}).String())
		}
	}
	results := measured(t, args...)
	assert.Len(t, results, len(want))
	for _, cell := range want {
		r, ok := results[cell]
		require.True(t, ok, cell)
		if cases.ByName(r.Case).OfTarget {
			// The system may count processor time by ticks that are longer than a short loop.
			assert.GreaterOrEqual(t, r.Value, 0.0, cell)
		} else {
			assert.Positive(t, r.Value, cell)
		}
		assert.Equal(t, 1, r.Repeat, cell)
		assert.Equal(t, cases.ByName(r.Case).Unit, r.Unit, cell)
	}
}

func TestGoroutinesShareMemoryWhateverTheEnvironmentSays(t *testing.T) {
	t.Setenv(device.Variable, "no device")
	assert.Positive(t, measured(t, "-device", "local", "-repeat", "1", "fop_lat")["fop_lat:8"].Value)
}

func TestMoreRanksThanTwoTakePart(t *testing.T) {
	results := measured(t, "-device", "local", "-n", "4", "-repeat", "2", "put_bw:8", "fence_rate", "pattern16_bw:1048576", "bcast_lat:8", "fence_scale")
	assert.Len(t, results, 5)
	for _, r := range results {
		assert.Equal(t, 4, r.Ranks)
		assert.Equal(t, 2, r.Repeat)
		assert.LessOrEqual(t, r.Min, r.Max)
	}
}

func TestTimedLoopsDoNotAllocate(t *testing.T) {
	// Loops of many operations have 200 iterations, those of others thousands.
	for shorten, cells := range map[int][]string{
		1: {"scatter_rate", "update_rate"},
		4: {"put_flush_lat:8", "get_flush_lat:1024", "acc_flush_lat:8,1024", "fop_lat", "put_bw:8", "get_bw:8",
			"pscw_put_lat:8", "pscw_get_lat:8", "pscw_both_lat:8", "pattern16_bw:8", "msg_lat:8", "msg_bw:8", "allreduce_lat:8", "bcast_lat:8"},
	} {
		checkAllocs(t, shorten, cells)
	}
}

// checkAllocs checks that the loops of cells allocate less than an object in four iterations. What the runtime, the
// barriers around a loop and a rank that falls asleep allocate is counted too. It does not grow with the iterations,
// but with how busy the machine is, and only adds: so a cell is measured again, and the least counts.
func checkAllocs(t *testing.T, shorten int, cells []string) {
	t.Helper()
	for range 10 {
		var many []string
		for name, r := range measured(t, append([]string{"-device", "local", "-repeat", "1", "-allocs", fmt.Sprint("-shorten=", shorten)}, cells...)...) {
			require.NotNil(t, r.Allocs)
			if iterations := cases.ByName(r.Case).Iterations(r.Size) / shorten; *r.Allocs >= uint64(iterations/4) {
				many = append(many, name)
				t.Logf("%s: %d objects in a loop of %d iterations", name, *r.Allocs, iterations)
			}
		}
		if cells = many; len(cells) == 0 {
			return
		}
	}
	t.Errorf("these cells allocate in their loops: %v", cells)
}

func TestSwitchesReachTheWindows(t *testing.T) {
	results := measured(t, "-device", "local", "-repeat", "1", "-set", "singleelement=on", "-set", "sameop=on", "acc_flush_lat:8,1024")
	assert.Positive(t, results["acc_flush_lat:8"].Value)
	assert.Contains(t, results["acc_flush_lat:1024"].Skipped, "singleelement=on")

	var stdout, stderr bytes.Buffer
	// With one operation for all, a sum and then a swap do not go together.
	assert.Equal(t, 0, run(t.Context(), []string{benchtest.Trial(), "-device", "local", "-repeat", "1", "-set", "singleelement=on", "acc_flush_lat:16"}, &stdout, &stderr))
	assert.Equal(t, "acc_flush_lat                16              - us\n", stdout.String())
	assert.Equal(t, "bench: acc_flush_lat 16 is left out: singleelement=on, and it accumulates 2 elements\n", stderr.String())
}

func TestMessagesAreLeftOutWhereASwitchIsOfOtherDevices(t *testing.T) {
	results := measured(t, "-device", "sim:ndr-2024", "-set", "collect=off", "-set", "pack=off", "msg_lat:8", "bcast_lat:8")
	assert.Equal(t, "collect=off, pack=off, and messages go over a device of their own", results["msg_lat:8"].Skipped)
	assert.Positive(t, results["bcast_lat:8"].Value)
}

func TestAJobThatTakesTooLongEnds(t *testing.T) {
	var stdout, stderr bytes.Buffer
	assert.Equal(t, 1, run(t.Context(), []string{"-device", "local", "-timeout", "1us", "fence_put_lat:8"}, &stdout, &stderr))
	assert.Contains(t, stderr.String(), "not done in time: 1µs (-timeout)")
	assert.Empty(t, stdout.String())
}

func TestWhoIsEndedSaysByWhat(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("received SIGINT"))
	for _, device := range []string{device.Local, device.Default()} {
		var stdout, stderr bytes.Buffer
		assert.Equal(t, 1, run(ctx, []string{"-device", device, "fence_put_lat:8"}, &stdout, &stderr))
		assert.Equal(t, "bench: ended early: received SIGINT\n", stderr.String())
		assert.Empty(t, stdout.String())
	}
}

func TestAProfileIsOfOneJob(t *testing.T) {
	file := t.TempDir() + "/profile"
	measured(t, "-device", "local", "-repeat", "1", "-cpuprofile", file, "put_flush_lat:8")
	info, err := os.Stat(file)
	require.NoError(t, err)
	assert.Positive(t, info.Size())

	var stderr bytes.Buffer
	assert.Equal(t, 2, run(t.Context(), []string{"-device", "local", "-cpuprofile", file, "put_flush_lat:8", "fence_scale:3"}, io.Discard, &stderr))
	assert.Contains(t, stderr.String(), "-cpuprofile is of one job")
}

func TestTheListTellsCasesAndSwitches(t *testing.T) {
	var stdout, stderr bytes.Buffer
	require.Equal(t, 0, run(t.Context(), []string{"-list"}, &stdout, &stderr))
	for _, name := range cases.Names() {
		assert.Contains(t, stdout.String(), "  "+name+" ")
	}
	for _, s := range toggles.All() {
		assert.Contains(t, stdout.String(), "  "+s.Name+"=")
	}
	for _, s := range schemes.All() {
		assert.Contains(t, stdout.String(), "  "+s.Name)
	}
	for _, test := range []struct {
		args []string
		says []string
	}{
		{[]string{"-h"}, []string{"The defaults without schemes (for those with it see bench schemes -h)", "(default 3)"}},
		{[]string{"schemes", "-h"}, []string{"The defaults with schemes:", "(default 21)"}},
	} {
		stderr.Reset()
		require.Equal(t, 0, run(t.Context(), test.args, &stdout, &stderr))
		assert.Contains(t, stderr.String(), "usage: go run ./bench")
		for _, text := range test.says {
			assert.Contains(t, stderr.String(), text)
		}
		for _, pattern := range schemes.Patterns() {
			assert.Contains(t, stderr.String(), pattern)
		}
	}
}

func TestWrongUsageIsOneLineAndStatusTwo(t *testing.T) {
	for _, test := range []struct {
		args []string
		says string
	}{
		{[]string{"nonesuch"}, `bench: there is no case "nonesuch"; `},
		{[]string{"-set", "nonsense"}, `bench: -set nonsense: there is no switch "nonsense"; `},
		{[]string{"-n", "two"}, `bench: invalid value "two" for flag -n: `},
	} {
		var stdout, stderr bytes.Buffer
		assert.Equal(t, 2, run(t.Context(), test.args, &stdout, &stderr))
		assert.True(t, strings.HasPrefix(stderr.String(), test.says), stderr.String())
		assert.Equal(t, 1, strings.Count(stderr.String(), "\n"), stderr.String())
		assert.Empty(t, stdout.String())
	}
}

func Example() {
	var out strings.Builder
	run(context.Background(), []string{benchtest.Trial(), "-device", "local", "-repeat", "1", "put_flush_lat:8", "put_bw:1024"}, &out, os.Stderr)
	for line := range strings.Lines(out.String()) {
		fields := strings.Fields(line)
		fmt.Println("case", fields[0], "size", fields[1], "unit", fields[3])
	}
	// Output:
	// case put_flush_lat size 8 unit us
	// case put_bw size 1024 unit MB/s
}
