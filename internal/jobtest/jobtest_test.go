package jobtest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/world"
)

func TestMain(m *testing.M) { jobtest.Main(m) }

var (
	failing = jobtest.Register("failing", func(_ context.Context, w *world.World) error {
		if w.Rank() == 1 {
			return errors.New("rank one says no")
		}
		return nil
	})
	waiting = jobtest.Register("waiting", func(ctx context.Context, w *world.World) error {
		jobtest.Signal("ready")
		if w.Rank() == 1 {
			<-ctx.Done()
			return nil
		}
		err := w.Barrier(ctx)
		if lost := (*world.PeerError)(nil); !errors.As(err, &lost) || lost.Rank != 1 {
			return fmt.Errorf("error is %v, want that rank 1 is lost", err)
		}
		return nil
	})
)

// verbose is the text of a very long error.
var verbose = strings.Repeat("again and ", 100_000)

var rambling = jobtest.Register("rambling", func(_ context.Context, w *world.World) error {
	return fmt.Errorf("%sagain, rank %d", verbose, w.Rank())
})

// left keeps the file of leaving from being collected.
var left *os.File

var (
	leaving = jobtest.Register("leaving things", func(context.Context, *world.World) (err error) {
		left, err = os.Open("/dev/zero")
		return err
	})
	forgetting = jobtest.Register("forgetting a goroutine", func(context.Context, *world.World) error {
		go func() { select {} }()
		return nil
	})
)

// barrier is a body in which the survivors fail.
var barrier = jobtest.Register("barrier", func(ctx context.Context, w *world.World) error {
	jobtest.Signal("ready")
	if w.Rank() == 1 {
		<-ctx.Done()
	}
	return w.Barrier(ctx)
})

func killed(t *testing.T, n int, name string) { jobtest.Start(t, n, name).Killed(1) }

// processorsVariable has a process of this test say how many processors it has.
const processorsVariable = "RMA_JOBTEST_PROCESSORS"

// Every other seed has the tests run with more processors, unless the user has chosen a number.
func TestProcessors(t *testing.T) {
	if os.Getenv(processorsVariable) != "" {
		fmt.Printf("processors=%d\n", runtime.GOMAXPROCS(0))
		return
	}
	self, err := os.Executable()
	require.NoError(t, err)
	processors := func(number, seed int) (n int) {
		command := exec.Command(self, "-test.run", "^TestProcessors$")
		command.Env = append(os.Environ(), processorsVariable+"=1", fmt.Sprint("RMA_TEST_SEED=", seed), "GOMAXPROCS=")
		if number > 0 {
			command.Env = append(command.Env, fmt.Sprint("GOMAXPROCS=", number))
		}
		output, err := command.Output()
		require.NoError(t, err, "%s", output)
		_, err = fmt.Sscanf(string(output), "processors=%d\n", &n)
		require.NoError(t, err, "%s", output)
		return n
	}
	for _, number := range []int{1, 3, 6} {
		for seed := range 2 {
			require.Equal(t, number, processors(number, seed), "seed %d", seed)
		}
	}
	require.Equal(t, max(4, processors(0, 0)), processors(0, 1))
}

func TestEverywhere(t *testing.T) { jobtest.Everywhere(t, 3, added) }

func TestKill(t *testing.T) {
	jobtest.Start(t, 3, waiting).Killed(1)
}

// withoutMain runs a body as in a package whose TestMain does not call Main.
func withoutMain(t *testing.T, n int, name string) {
	jobtest.ForgetMain()
	jobtest.Processes(t, n, name)
}

// failsVariable is set in a process that runs one case of TestFailures, which must fail there.
const failsVariable = "RMA_JOBTEST_FAILS"

// TestFailures checks that a failing rank makes its test fail with the reason. Memory that a World has mapped is
// released when it is collected. The cases about what remains do not wait for that.
func TestFailures(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	for _, c := range []struct {
		name string
		over func(t *testing.T, n int, name string)
		body string
		says string
	}{
		{"goroutines", jobtest.Goroutines, failing, "rank one says no"},
		{"processes, rambling", jobtest.Processes, rambling, "rank 1: " + verbose + "again, rank 1"},
		{"killed", killed, barrier, "rank 0: world: Barrier"},
		{"simulated", jobtest.Simulated, failing, ": world: rank 1: rank one says no"},
		{"leaving", jobtest.Processes, leaving, `still holds ["/dev/zero"] [`},
		{"forgetting", jobtest.Processes, forgetting, "still holds [] ["},
		{"without Main", withoutMain, barrier, "its package needs func TestMain"},
		{"unknown", jobtest.Goroutines, "nobody registered this", `no body is registered as "nobody registered this"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if os.Getenv(failsVariable) != "" {
				c.over(t, 2, c.body)
				return
			}
			t.Parallel()
			command := exec.CommandContext(t.Context(), self, "-test.run", "^TestFailures$/^"+c.name+"$")
			command.Env = append(os.Environ(), failsVariable+"=1")
			output, err := command.CombinedOutput()
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit, "%s", output)
			require.True(t, strings.Contains(string(output), c.says), "%s", output)
		})
	}
}

// Processes of the test binary find a body by its name.
func ExampleRegister() {
	name := jobtest.Register("do nothing", func(context.Context, *world.World) error { return nil })
	fmt.Println(name)
	// Output: do nothing
}
