package job_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/internal/simtest"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/verbs/sim"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// A tracedEvent is what a viewer reads of one.
type tracedEvent struct {
	Ph, Name string
	Pid, Tid int
	Ts, Dur  float64
	Args     struct {
		Name  string
		Bytes int
	}
	// lane is what its lane is called, without a number.
	lane string
}

func (e *tracedEvent) end() float64 { return e.Ts + e.Dur }

// readTrace gives the names of the processes of a file, and its events.
func readTrace(t *testing.T, file string) (ranks map[int]string, events []tracedEvent) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var all struct{ TraceEvents []tracedEvent }
	require.NoError(t, json.Unmarshal(text, &all))
	ranks = make(map[int]string)
	lanes := make(map[[2]int]string)
	for _, e := range all.TraceEvents {
		switch {
		case e.Name == "process_name":
			ranks[e.Pid] = e.Args.Name
		case e.Name == "thread_name":
			lanes[[2]int{e.Pid, e.Tid}], _, _ = strings.Cut(e.Args.Name, " ")
		case e.Ph != "M":
			e.lane = lanes[[2]int{e.Pid, e.Tid}]
			events = append(events, e)
		}
	}
	return ranks, events
}

const tracedOperations = 16

var tracedBytes = testsize.PlainOrLarge(256<<10, 1<<20)

// operate has rank 0 write to rank 1 and read from it, and tells when.
var operate = register("operations that are traced", func(s *script) {
	win, err := window.Allocate[byte](s.Ctx, s.World, 2*tracedOperations*tracedBytes)
	s.OK(err)
	s.OK(win.Fence(s.Ctx))
	begun := s.World.Now()
	if s.me == 0 {
		buffers := make([]byte, 2*tracedOperations*tracedBytes)
		for i := range tracedOperations {
			at := 2 * i * tracedBytes
			s.OK(win.Put(buffers[at:][:tracedBytes], 1, at))
			s.OK(win.Get(buffers[at+tracedBytes:][:tracedBytes], 1, at+tracedBytes))
		}
	}
	s.OK(win.Fence(s.Ctx, window.NoSucceed))
	s.World.Span("epoch", begun, s.World.Now())
	s.OK(win.Close())
})

// One file has the operations of all processes of a job.
func TestTraceOfProcesses(t *testing.T) {
	busy.Acquire(t)
	file := filepath.Join(t.TempDir(), "t.json")
	job := func() {
		for _, err := range jobtest.StartWith(t, 3, operate, func(int) []string {
			return []string{"RMA_DEVICE=tcp", "RMA_TRACE=" + file}
		}).Wait() {
			require.NoError(t, err)
		}
	}
	job()
	job() // begins it anew
	ranks, events := readTrace(t, file)
	require.Equal(t, map[int]string{0: "rank 0", 1: "rank 1", 2: "rank 2"}, ranks)
	var epochs, fences [3]tracedEvent
	seen := make(map[string]int)
	bytes := make(map[string]int)
	for _, e := range events {
		key := fmt.Sprintf("%d %s: %s", e.Pid, e.lane, e.Name)
		seen[key]++
		bytes[key] += e.Args.Bytes
		switch e.Name {
		case "epoch":
			epochs[e.Pid] = e
		case "Fence":
			fences[e.Pid] = e // the last
		}
	}
	require.Equal(t, tracedOperations*tracedBytes, bytes["0 out: write to 1"], "%v", seen)
	require.Equal(t, tracedOperations*tracedBytes, bytes["0 in: read from 1"], "%v", seen)
	for rank, epoch := range epochs {
		require.Equal(t, 1, seen[fmt.Sprintf("%d program: epoch", rank)])
		require.Equal(t, 2, seen[fmt.Sprintf("%d program: Fence", rank)])
		require.GreaterOrEqual(t, fences[rank].Ts, epoch.Ts)
		require.LessOrEqual(t, fences[rank].end(), epoch.end())
		// Whoever is in it has been in it at one time with all: their clocks are one.
		for _, other := range epochs {
			require.Less(t, epoch.Ts, other.end())
		}
	}
	for _, name := range []string{"0 processor: post write", "0 processor: post read", "0 processor: poll", "1 processor: serve", "1 in: receive from 0"} {
		require.NotZero(t, seen[name], "%s: %v", name, seen)
	}
	for _, e := range events {
		if e.Pid == 0 && (e.Name == "write to 1" || e.Name == "read from 1") {
			require.GreaterOrEqual(t, e.Ts, epochs[0].Ts)
			require.LessOrEqual(t, e.end(), epochs[0].end())
		}
	}
	// A rank that has to wait for a core may find that all it has written has arrived before it reads.
	await.True(t, "writes and reads to be under way at one time", func() bool {
		if overlap(events) > 0 {
			return true
		}
		job()
		_, events = readTrace(t, file)
		return false
	})
}

// overlap is for how long writes of rank 0 to rank 1 and reads from there are under way at one time.
func overlap(events []tracedEvent) (total float64) {
	for _, e := range events {
		for _, other := range events {
			if e.Pid == 0 && other.Pid == 0 && e.Name == "write to 1" && e.lane == "out" && other.Name == "read from 1" {
				total += max(0, min(e.end(), other.end())-max(e.Ts, other.Ts))
			}
		}
	}
	return total
}

// Those who go on after a failure are in it again, by their new numbers; a rank that was
// killed has left nothing, whatever it was doing.
func TestTraceOfSurvivors(t *testing.T) {
	busy.Acquire(t)
	file := filepath.Join(t.TempDir(), "t.json")
	jobtest.StartWith(t, 5, killedShrinking, func(int) []string {
		return []string{"RMA_DEVICE=tcp", "RMA_TRACE=" + file}
	}).Wait() // ranks 2 and 0 are killed
	ranks, events := readTrace(t, file)
	want := map[int]string{1: "rank 1", 3: "rank 3", 4: "rank 4"}
	for rank := range 3 {
		want[job.MaxRanks+1+rank] = fmt.Sprintf("rank %d of the 4 that were left", 1+rank)
		want[2*job.MaxRanks+rank] = fmt.Sprintf("rank %d of the 3 that were left", rank)
	}
	require.Equal(t, want, ranks)
	require.NotEmpty(t, events)
}

func TestTracesThatCannotBe(t *testing.T) {
	nothing := func(s *script) {}
	tcp := world.WithDevice("tcp")
	letter := filepath.Join(t.TempDir(), "letter")
	require.NoError(t, os.WriteFile(letter, []byte("Dear Sir,\n"), 0o600))
	for _, c := range []struct {
		says    string
		options []world.Option
	}{
		{"all ranks map each other's memory, and loads and stores are not traced", []world.Option{world.WithTrace("t.json")}},
		{"letter: is not a timeline", []world.Option{tcp, world.WithTrace(letter)}},
		{"no such file or directory", []world.Option{tcp, world.WithTrace(filepath.Join(t.TempDir(), "none", "t.json"))}},
	} {
		err := world.Run(t.Context(), 2, scripted(nothing), c.options...)
		require.ErrorIs(t, err, world.ErrEnvironment)
		require.ErrorContains(t, err, "RMA_TRACE (or WithTrace): ")
		require.ErrorContains(t, err, c.says)
	}
	text, err := os.ReadFile(letter)
	require.NoError(t, err)
	require.Equal(t, "Dear Sir,\n", string(text))
}

// Without a trace the program may tell of spans nonetheless.
func TestSpansWithoutATrace(t *testing.T) {
	require.NoError(t, run(t, 2, func(s *script) { s.World.Span("step", 0, time.Second) }))
}

// In virtual time the processor is said to compute where the program does, and not to sleep.
func TestComputingIsTold(t *testing.T) {
	simulator := simtest.New(t, "ndr-2024", 1)
	var computed [2]time.Duration
	simulator.Trace(func(e sim.Event) {
		if e.Kind == sim.Computed {
			computed[e.Rank] += e.Until - e.At
		}
	})
	require.NoError(t, world.Simulate(t.Context(), simulator, 2, scripted(func(s *script) {
		s.OK(s.World.Barrier(s.Ctx))
		s.World.Compute(time.Duration(s.me) * time.Millisecond)
		s.OK(s.World.Barrier(s.Ctx))
	})))
	require.Zero(t, computed[0])
	require.InDelta(t, time.Millisecond, computed[1], float64(time.Microsecond))
}
