package job_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/bootstrap/pmi"
	"github.com/onesided/rma/world"
)

// managedVariable makes a process of this test binary the only rank of a manager's job.
const managedVariable = "WORLD_TEST_MANAGED"

// managed starts a process that runs the test as the only rank of a manager's job, and returns what it prints.
func managed(t *testing.T, name string, stderr *os.File) (*pmi.Server, *exec.Cmd, *bufio.Reader) {
	t.Helper()
	server := pmi.NewServer(1, pmi.Events{})
	t.Cleanup(func() { _ = server.Close() })
	child, printed := managedBy(t, server, 0, name, stderr)
	return server, child, printed
}

// managedBy starts a process that runs the test as a rank of a manager's job, and returns what it prints.
func managedBy(t *testing.T, server *pmi.Server, rank int, name string, stderr *os.File) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	file, variables, err := server.Child(rank, 3)
	require.NoError(t, err)
	defer file.Close()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+name+"$")
	child.Env = append(append(os.Environ(), variables...), managedVariable+"=1")
	child.ExtraFiles = []*os.File{file}
	if stderr != nil {
		child.Stderr = stderr
	}
	printed, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	return child, bufio.NewReader(printed)
}

// requireLine fails the test if the output of a process does not begin with a line, and shows that output.
func requireLine(t *testing.T, want string, printed *bufio.Reader) {
	t.Helper()
	if line, err := printed.ReadString('\n'); line != want+"\n" {
		rest, _ := io.ReadAll(printed)
		t.Fatalf("the process prints %q in place of %q: %v: %s", line, want, err, rest)
	}
}

// A rank whose manager is gone ends, whoever has started it.
func TestManagerGone(t *testing.T) {
	if os.Getenv(managedVariable) != "" {
		_, err := world.Init(t.Context())
		require.NoError(t, err)
		fmt.Println("joined")
		await.Killed()
		return
	}
	t.Parallel()
	server, child, printed := managed(t, t.Name(), nil)
	requireLine(t, "joined", printed)
	require.NoError(t, server.Close())
	var exit *exec.ExitError
	require.ErrorAs(t, child.Wait(), &exit)
	require.Equal(t, syscall.SIGTERM, exit.Sys().(syscall.WaitStatus).Signal())
}

// A lateLogger writes that the manager is gone to standard error, once the process has SIGTERM.
type lateLogger struct {
	slog.Handler
	terminated <-chan os.Signal
	wrote      chan error
}

func (l lateLogger) Handle(_ context.Context, r slog.Record) error {
	if r.Level == slog.LevelError {
		<-l.terminated
		_, err := fmt.Fprintln(os.Stderr, r.Message)
		l.wrote <- err
	}
	return nil
}

// A program gets SIGTERM before its logger gets the reason. It lives until its own handler of the signal is done, even if its
// standard error was a pipe to the launcher.
func TestManagerGoneCaught(t *testing.T) {
	if os.Getenv(managedVariable) != "" {
		terminated := make(chan os.Signal, 1)
		signal.Notify(terminated, syscall.SIGTERM)
		l := lateLogger{slog.NewTextHandler(io.Discard, nil), terminated, make(chan error, 1)}
		_, err := world.Init(t.Context(), world.WithLogger(slog.New(l)))
		require.NoError(t, err)
		fmt.Println("joined")
		require.ErrorIs(t, await.Receive(t, "the reason to be logged", l.wrote), syscall.EPIPE)
		fmt.Println("saved")
		return
	}
	t.Parallel()
	launcher, stderr, err := os.Pipe()
	require.NoError(t, err)
	server, child, printed := managed(t, t.Name(), stderr)
	require.NoError(t, stderr.Close())
	requireLine(t, "joined", printed)
	require.NoError(t, launcher.Close())
	require.NoError(t, server.Close())
	requireLine(t, "saved", printed)
	_, err = io.Copy(io.Discard, printed)
	require.NoError(t, err)
	require.NoError(t, child.Wait())
}

// An Init whose context has ended before the call leaves the manager alone: a later one joins.
func TestInitAfterTheEnd(t *testing.T) {
	if os.Getenv(managedVariable) != "" {
		_, err := world.Init(ended)
		require.ErrorIs(t, err, context.Canceled)
		w, err := world.Init(t.Context())
		require.NoError(t, err)
		require.NoError(t, w.Close())
		fmt.Println("joined")
		return
	}
	t.Parallel()
	_, child, printed := managed(t, t.Name(), nil)
	requireLine(t, "joined", printed)
	_, err := io.Copy(io.Discard, printed)
	require.NoError(t, err)
	require.NoError(t, child.Wait())
}

// A process whose Init has failed gets an error that says why, and what to do. Its manager is told, too.
func TestInitAfterFailure(t *testing.T) {
	if os.Getenv(managedVariable) != "" {
		_, err := world.Init(t.Context(), world.WithDevice("nonsense"))
		require.ErrorContains(t, err, `device "nonsense"`)
		_, err = world.Init(t.Context())
		require.ErrorIs(t, err, pmi.ErrTaken)
		require.EqualError(t, err, "world: Init: this process can join no further job, because an earlier Init failed; start it again under the launcher: pmi: the connection to the process manager was used before in this process, for a job that was not finalized")
		fmt.Println("refused")
		return
	}
	t.Parallel()
	blames := make(chan int, 2)
	server := pmi.NewServer(1, pmi.Events{Blame: func(_, blamed int, _ bool) { blames <- blamed }})
	defer server.Close()
	child, printed := managedBy(t, server, 0, t.Name(), nil)
	requireLine(t, "refused", printed)
	_, err := io.Copy(io.Discard, printed)
	require.NoError(t, err)
	require.NoError(t, child.Wait())
	server.Wait()
	require.Len(t, blames, 1)
	require.Zero(t, <-blames)
}

// A rank tells its manager which rank was the first to fail, or to leave while it was needed, before its own calls fail for that
// reason. A rank whose body then fails for another reason takes that back. A rank that closes its World tells its manager
// of no rank.
func TestBlame(t *testing.T) {
	const variable = "WORLD_TEST_BLAMED"
	if os.Getenv(managedVariable) != "" {
		switch os.Getenv(variable) {
		case "fails":
			world.Main(func(ctx context.Context, w *world.World) error {
				if w.Rank() == 0 {
					return errors.New("nothing to read")
				}
				return w.Barrier(ctx)
			})
		case "both fail":
			world.Main(func(ctx context.Context, w *world.World) error {
				if w.Rank() == 1 && w.Barrier(ctx) == nil {
					return nil
				}
				return errors.New("nothing to read")
			})
		}
		w, err := world.Init(t.Context())
		require.NoError(t, err)
		// In the team the ranks have other numbers.
		team, err := w.Split(t.Context(), 0, -w.Rank())
		require.NoError(t, err)
		switch {
		case w.Rank() == 0 && os.Getenv(variable) == "ends":
			os.Exit(1)
		case w.Rank() == 0:
			require.NoError(t, w.Close())
		default:
			require.Error(t, team.Barrier(t.Context()))
		}
		os.Exit(1)
	}
	for _, device := range []string{"shm", "tcp"} {
		for _, how := range []string{"ends", "leaves", "fails", "both fail"} {
			t.Run(device+"/"+how, func(t *testing.T) {
				t.Setenv("RMA_DEVICE", device)
				t.Setenv(variable, how)
				type blame struct {
					rank, blamed int
					left         bool
				}
				blames, gone := make(chan blame, 2), make(chan int, 2)
				server := pmi.NewServer(2, pmi.Events{
					Blame: func(rank, blamed int, left bool) { blames <- blame{rank, blamed, left} },
					Gone:  func(rank int) { gone <- rank },
				})
				defer server.Close()
				var ranks []*exec.Cmd
				for rank := range 2 {
					child, _ := managedBy(t, server, rank, "TestBlame", nil)
					ranks = append(ranks, child)
				}
				for _, child := range ranks {
					var exit *exec.ExitError
					require.ErrorAs(t, child.Wait(), &exit)
					require.Equal(t, 1, exit.ExitCode())
				}
				server.Wait()
				close(blames)
				var all []blame
				for b := range blames {
					all = append(all, b)
				}
				want := []blame{{1, 0, how == "leaves"}}
				if how == "both fail" {
					want = append(want, blame{1, pmi.NoRank, false})
				}
				require.Equal(t, want, all)
				close(gone)
				for rank := range gone {
					require.True(t, rank == 1 || how == "ends", "rank %d has not left its manager in order", rank)
				}
			})
		}
	}
}
