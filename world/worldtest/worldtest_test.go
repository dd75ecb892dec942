package worldtest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/world"
	"github.com/onesided/rma/world/worldtest"
)

func TestMain(m *testing.M) { worldtest.Main(m) }

var (
	counting = worldtest.Register("counting", func(ctx context.Context, w *world.World) error {
		sum := make([]int, 1)
		if err := world.AllReduce(ctx, w, []int{w.Rank() + 1}, sum, func(a, b int) int { return a + b }); err != nil {
			return err
		}
		if want := w.Size() * (w.Size() + 1) / 2; sum[0] != want {
			return fmt.Errorf("sum is %d, want %d", sum[0], want)
		}
		return nil
	})
	failing = worldtest.Register("failing", func(_ context.Context, w *world.World) error {
		if w.Rank() == 1 {
			return errors.New("rank one says no")
		}
		return nil
	})
	waiting = worldtest.Register("waiting", func(ctx context.Context, w *world.World) error {
		worldtest.Signal("here")
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

// left keeps what leaving leaves from being collected.
var left *os.File

var (
	leaving = worldtest.Register("leaving things", func(context.Context, *world.World) (err error) {
		left, err = os.Open("/dev/zero")
		return err
	})
	forgetting = worldtest.Register("forgetting a goroutine", func(context.Context, *world.World) error {
		go func() { select {} }()
		return nil
	})
)

func TestRun(t *testing.T) { worldtest.Run(t, 3, counting) }

func TestKill(t *testing.T) {
	job := worldtest.Start(t, 3, waiting)
	for rank := range 3 {
		job.Await(rank, "here")
		require.Positive(t, job.PID(rank))
	}
	job.Kill(1)
	errs := job.Wait()
	require.ErrorContains(t, errs[1], "killed")
	require.NoError(t, errs[0])
	require.NoError(t, errs[2])
}

// innerVariable lets the tests run that have to fail.
const innerVariable = "WORLDTEST_INNER"

func inner(t *testing.T) {
	if os.Getenv(innerVariable) == "" {
		t.Skip("skipped: this fails by design, and TestFailures runs it")
	}
}

func TestInnerGoroutines(t *testing.T) {
	inner(t)
	worldtest.Goroutines(t, 2, failing)
}

func TestInnerProcesses(t *testing.T) {
	inner(t)
	worldtest.Processes(t, 2, failing)
}

func TestInnerLeaving(t *testing.T) {
	inner(t)
	worldtest.Processes(t, 2, leaving)
}

func TestInnerForgetting(t *testing.T) {
	inner(t)
	worldtest.Processes(t, 2, forgetting)
}

func TestInnerUnknown(t *testing.T) {
	inner(t)
	worldtest.Goroutines(t, 2, "nobody registered this")
}

// TestFailures looks that a rank which fails makes its test fail, and says why.
func TestFailures(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	for name, says := range map[string]string{
		"TestInnerGoroutines": "rank one says no",
		"TestInnerProcesses":  "rank 1: rank one says no",
		"TestInnerLeaving":    `still holds ["/dev/zero"] [], 2 goroutines in place of 2`,
		"TestInnerForgetting": "still holds [] [], 3 goroutines in place of 2",
		"TestInnerUnknown":    `no body is registered as "nobody registered this"`,
	} {
		t.Run(name, func(t *testing.T) {
			command := exec.CommandContext(t.Context(), self, "-test.run", "^"+name+"$")
			command.Env = append(os.Environ(), innerVariable+"=1")
			output, err := command.CombinedOutput()
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit, "%s", output)
			require.True(t, strings.Contains(string(output), says), "%s", output)
		})
	}
}

// A body has a name, by which processes of the test binary find it.
func ExampleRegister() {
	name := worldtest.Register("do nothing", func(context.Context, *world.World) error { return nil })
	fmt.Println(name)
	// Output: do nothing
}
