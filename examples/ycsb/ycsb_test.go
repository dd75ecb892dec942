package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/launchtest"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/world"
)

// mainVariable makes a process of this test binary the program.
const mainVariable = "YCSB_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(mainVariable) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// The draws of the first two records follow Zipf's law.
func TestZipfian(t *testing.T) {
	const n, draws = 1000, 1_000_000
	z := newZipfian(n)
	random := testsize.Random(t, 2)
	var counts [n]float64
	for range draws {
		counts[z.draw(random)]++
	}
	for _, rank := range []int{0, 1} {
		want := draws / math.Pow(float64(rank+1), theta) / z.zeta
		require.InEpsilon(t, want, counts[rank], 0.03, "rank %d", rank)
	}
	// The method is only approximate for later records, but their sum is close.
	half, want := 0.0, 0.0
	for rank := range n / 2 {
		half += counts[rank]
		want += draws / math.Pow(float64(rank+1), theta) / z.zeta
	}
	require.InEpsilon(t, want, half, 0.02)
	for _, few := range []int{1, 2, 3} {
		for _, record := range records(random, zipf, few, 100) {
			require.Less(t, int(record), few)
		}
	}
}

// verify finds a value with a changed byte, a value that was cut, and the value of another record.
func TestVerify(t *testing.T) {
	for _, size := range []int{leastValue, 29, 64} {
		value := make([]byte, size)
		fill(value, 7, 3<<16|1)
		require.NoError(t, verify(value, 7, size))
		require.Error(t, verify(value, 8, size))
		require.Error(t, verify(value[:size-1], 7, size))
		for i := range value {
			value[i] ^= 1
			require.Error(t, verify(value, 7, size), "byte %d of %d", i, size)
			value[i] ^= 1
		}
		newer := make([]byte, size)
		fill(newer, 7, 4<<16|1)
		require.Error(t, verify(append(value[:size-8:size-8], newer[size-8:]...), 7, size))
	}
}

func TestUsage(t *testing.T) {
	for _, c := range []struct{ arguments, says string }{
		{"-workload D", `-workload "D", allowed are A, B, C and F`},
		{"-records 0", "must be a number from 1 to 100000000"},
		{"-value 8", "must be a number from 24 to 4096"},
		{"-distribution normal", `"normal", allowed are zipfian and uniform`},
		{"-batch 0", "-batch: must be"},
		{"-operations -1", "-operations: must be"},
		{"more", `"more": there are flags only`},
	} {
		var errout strings.Builder
		require.Equal(t, 2, newKernel().Command(t.Context(), strings.Fields(c.arguments), io.Discard, &errout))
		require.Contains(t, errout.String(), c.says)
	}
}

func Example() {
	var out strings.Builder
	status := newKernel().Command(context.Background(), strings.Fields("-ranks 2 -workload b -records 100 -operations 1000"), &out, &out)
	begin, _, _ := strings.Cut(out.String(), ":")
	fmt.Println(status, begin)
	// Output: 0 workload B, zipfian, 2 ranks, 100 records of 64 bytes, batches of 64
}

// Each workload counts every operation once, under its kind.
func TestWorkloads(t *testing.T) {
	for name, w := range workloads {
		for _, distribution := range []string{uniform, zipf} {
			o := options{name: name, workload: w, records: 500, value: 64, distribution: distribution, batch: 50, operations: 4001}
			var printed bytes.Buffer
			require.NoError(t, world.Run(t.Context(), 3, func(ctx context.Context, w *world.World) error {
				r, err := measure(ctx, w, o)
				if err != nil || w.Rank() != 0 {
					return err
				}
				assert.Positive(t, r.rate)
				reads, others := r.latencies[read].Total(), r.latencies[o.workload.other].Total()
				assert.EqualValues(t, o.operations, reads+others)
				assert.InDelta(t, o.workload.reads, float64(reads)/float64(o.operations), 0.05)
				return r.print(&printed, o, w.Size())
			}))
			require.Contains(t, printed.String(), "workload "+name)
			require.Contains(t, printed.String(), "p99.9")
		}
	}
}

func TestRedisRates(t *testing.T) {
	r, err := parseRates("\"test\",\"rps\",\"avg_latency_ms\"\n\"SET\",\"500.00\",\"1\"\n\"GET\",\"1000.00\",\"1\"\n")
	require.NoError(t, err)
	require.Equal(t, redisRates{get: 1000, set: 500}, r)
	require.InDelta(t, 1000, r.mixed(workloads["C"]), 1e-6)
	require.InDelta(t, 1/(0.5/1000+0.5/500), r.mixed(workloads["A"]), 1e-6)
	require.InDelta(t, 1/(0.5/1000+0.5*(1.0/500+1.0/1000)), r.mixed(workloads["F"]), 1e-6)
	_, err = parseRates("ERR unknown command")
	require.Error(t, err)
}

func TestRedis(t *testing.T) {
	for _, program := range redisPrograms {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("skipped: %s is not installed", program)
		}
	}
	o := options{workload: workloads["B"], records: 100, value: 32, operations: 2000}
	for _, loopback := range []bool{false, true} {
		rates, err := measureRedis(t.Context(), o, 2, loopback)
		require.NoError(t, err)
		require.Positive(t, rates.get)
		require.Positive(t, rates.set)
	}
}

// If rank 0 has no Redis, a run that needs it ends before it begins. Rank 0 prints which packages to install, and the
// other ranks print nothing. Programs that only other ranks have do not matter.
func TestWithoutRedis(t *testing.T) {
	t.Parallel()
	rmarun := launchtest.Build(t, "./cmd/rmarun")
	ycsb, err := os.Executable()
	require.NoError(t, err)
	sh, err := exec.LookPath("sh")
	require.NoError(t, err)
	fakes := t.TempDir()
	for _, program := range redisPrograms {
		require.NoError(t, os.WriteFile(filepath.Join(fakes, program), []byte("#!"+sh+"\nexit 1\n"), 0o755))
	}
	launch := func(script string) (status int, out, errout string) {
		ctx, cancel := context.WithTimeout(t.Context(), launchtest.Limit)
		defer cancel()
		command := exec.CommandContext(ctx, rmarun, "-n", "3", sh, "-c", script+` exec "$0" "$@"`, ycsb, "-redis", "-records", "100", "-operations", "1000")
		command.Env = append(os.Environ(), "FAKES="+fakes, mainVariable+"=1", "GORACE=atexit_sleep_ms=0")
		var stdout, stderr strings.Builder
		command.Stdout, command.Stderr = &stdout, &stderr
		var exit *exec.ExitError
		require.ErrorAs(t, command.Run(), &exit, "%s", &stderr)
		return exit.ExitCode(), stdout.String(), stderr.String()
	}
	status, out, errout := launch(`PATH=; [ $PMI_RANK = 0 ] || PATH=$FAKES;`)
	require.Equal(t, 2, status, errout)
	require.Empty(t, out)
	require.Equal(t, 1, strings.Count(errout, "ycsb: "), errout)
	require.Contains(t, errout, "-redis needs redis-server and redis-benchmark, of the packages redis-server and redis-tools in Debian")

	_, out, errout = launch(`PATH=; [ $PMI_RANK != 0 ] || PATH=$FAKES;`)
	require.Contains(t, out, "workload A")
	require.Contains(t, errout, "redis-server does not answer")
}
