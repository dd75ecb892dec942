package job_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/bootstrap/pmi"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/world"
)

// bodyVariable has this test binary be a program of world.Main with a body of that name.
const bodyVariable = "WORLD_TEST_BODY"

var errOfMain = errors.New("the body has failed")

// bodies are those of programs.
var bodies = map[string]func(ctx context.Context, w *world.World) error{
	"size": func(_ context.Context, w *world.World) error {
		if w.Rank() == 0 {
			fmt.Println("ranks", w.Size(), job.Of(w).Device().Attributes().Name)
		}
		return nil
	},
	// fail has the last rank fail, and the others wait for it.
	"fail": func(ctx context.Context, w *world.World) error {
		if w.Rank() == w.Size()-1 {
			return errOfMain
		}
		return w.Barrier(ctx)
	},
	// again has a rank close its World and ask for another.
	"again": func(ctx context.Context, w *world.World) error {
		if err := w.Close(); err != nil {
			return err
		}
		if _, err := world.Init(context.Background()); !errors.Is(err, world.ErrInitialized) {
			return fmt.Errorf("Init in the body: %w", err)
		}
		_, err := world.Init(ctx)
		return err
	},
	"panic": func(context.Context, *world.World) error { panic("the body panics") },
	// wait ends with the error of a context that has ended, obey without one, and ignore not at all.
	"wait": func(ctx context.Context, _ *world.World) error {
		fmt.Println("waits")
		<-ctx.Done()
		return ctx.Err()
	},
	"obey": func(ctx context.Context, _ *world.World) error {
		fmt.Println("waits")
		<-ctx.Done()
		return nil
	},
	"ignore": func(ctx context.Context, _ *world.World) error {
		fmt.Println("waits")
		<-ctx.Done()
		fmt.Println("goes on")
		await.Killed()
		return nil
	},
	// serve has rank 0 leave, while the others go on.
	"serve": func(_ context.Context, w *world.World) error {
		fmt.Println("waits")
		if w.Rank() != 0 {
			await.Killed()
		}
		return nil
	},
}

// A mainProgram is a process with a body.
type mainProgram struct {
	*exec.Cmd
	printed *bufio.Reader
	stderr  bytes.Buffer
}

// TestBodyOfMain is the programs of other tests.
func TestBodyOfMain(t *testing.T) {
	body := os.Getenv(bodyVariable)
	if body == "" {
		t.Skip("skipped: other tests start it as programs of theirs")
	}
	if body == "run" {
		require.NoError(t, world.Run(t.Context(), 2, bodies["size"]))
		return
	}
	if body == "init" {
		w, err := world.Init(t.Context())
		require.NoError(t, err)
		require.NoError(t, errors.Join(bodies["size"](t.Context(), w), w.Close()))
		return
	}
	world.Main(bodies[body])
}

func newProgram(t *testing.T, body string, environment ...string) *mainProgram {
	t.Helper()
	p := &mainProgram{Cmd: exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestBodyOfMain$")}
	p.Env = append(append(os.Environ(), bodyVariable+"="+body), environment...)
	p.Stderr = &p.stderr
	return p
}

func (p *mainProgram) start(t *testing.T) *mainProgram {
	t.Helper()
	printed, err := p.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.Start())
	p.printed = bufio.NewReader(printed)
	return p
}

// end waits for the end of the program, and returns its status as a shell does, or -1 if a signal has ended it.
func (p *mainProgram) end() (status int, stdout, stderr string) {
	text, _ := io.ReadAll(p.printed)
	_ = p.Wait()
	return p.ProcessState.ExitCode(), string(text), p.stderr.String()
}

// launch starts programs as the ranks of a job.
func launch(t *testing.T, body string, n int, environment ...string) []*mainProgram {
	t.Helper()
	server := pmi.NewServer(n, pmi.Events{})
	t.Cleanup(func() { _ = server.Close() })
	programs := make([]*mainProgram, n)
	for rank := range n {
		file, variables, err := server.Child(rank, 3)
		require.NoError(t, err)
		programs[rank] = newProgram(t, body, append(variables, environment...)...)
		programs[rank].ExtraFiles = []*os.File{file}
		programs[rank].start(t)
		require.NoError(t, file.Close())
	}
	return programs
}

// The environment says which ranks there are.
func TestMainChooses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		environment []string
		status      int
		says        string
	}{
		{[]string{"GOMAXPROCS=5"}, 0, "ranks 5 fabric\n"},
		{[]string{"RMA_RANKS=3"}, 0, "ranks 3 fabric\n"},
		{[]string{"RMA_RANKS=3", "RMA_SIMULATE=ndr-2024"}, 0, "ranks 3 sim:ndr-2024\n"},
		{[]string{"RMA_RANKS=none"}, 1, `world: Main: invalid environment: RMA_RANKS="none" must be the number of ranks, 1 to 65536` + "\n"},
		{[]string{"RMA_RANKS=0"}, 1, `RMA_RANKS="0" must be`},
		{[]string{"RMA_SIMULATE=none"}, 1, `world: Main: invalid environment: RMA_SIMULATE="none": sim: no profile "none"; allowed are`},
		{[]string{"RMA_RANKS=3", "RMA_ROOT=localhost:1"}, 1, `RMA_ROOT="localhost:1" makes this process a rank of a launcher's job, and RMA_RANKS="3" has it make ranks itself: unset one`},
		{[]string{"RMA_SIMULATE=ndr-2024", "RMA_DEVICE=tcp"}, 1, `RMA_SIMULATE="ndr-2024" simulates the cards of the ranks, and RMA_DEVICE="tcp" selects a device of this machine: unset one`},
		{[]string{"RMA_SIMULATE=ndr-2024", "PMI_RANK=0"}, 1, `PMI_RANK="0" makes this process a rank of a launcher's job, and RMA_SIMULATE="ndr-2024" has it make ranks itself: unset one`},
		{[]string{"PMI_RANK=0"}, 1, `world: Init: invalid environment: PMI_RANK="0" without a manager`},
	} {
		status, stdout, stderr := newProgram(t, "size", test.environment...).start(t).end()
		require.Equal(t, test.status, status, "%v: %s", test.environment, stderr)
		if status == 0 {
			require.Contains(t, stdout, test.says)
			require.Empty(t, stderr)
		} else {
			require.Contains(t, stderr, test.says)
			require.True(t, strings.HasPrefix(stderr, filepath.Base(os.Args[0])+": "), stderr)
			require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
		}
	}
	for rank, p := range launch(t, "size", 2) {
		status, stdout, stderr := p.end()
		require.Zero(t, status, stderr)
		require.Equal(t, rank == 0, strings.Contains(stdout, "ranks 2 shm\n"), stdout)
	}
}

// An error is printed once, and the process fails.
func TestMainFails(t *testing.T) {
	t.Parallel()
	name := filepath.Base(os.Args[0])
	status, _, stderr := newProgram(t, "fail", "RMA_RANKS=3").start(t).end()
	require.Equal(t, 1, status)
	require.Equal(t, name+": world: rank 2: "+errOfMain.Error()+"\n", stderr)
	stats := filepath.Join(t.TempDir(), "stats")
	for rank, p := range launch(t, "fail", 3, "RMA_STATS="+stats) {
		status, _, stderr := p.end()
		require.Equal(t, 1, status)
		want, said := fmt.Sprintf("%s: world: rank %d: ", name, rank), withoutWaits(stderr)
		if rank == 2 {
			require.Equal(t, want+errOfMain.Error()+"\n", said)
			continue
		}
		require.True(t, strings.HasPrefix(said, want+"Barrier: rank 2 has failed: "), stderr)
	}
	// Ranks that have failed write what they have done, too.
	text, err := os.ReadFile(stats)
	require.NoError(t, err)
	require.Equal(t, 3, strings.Count(string(text), " of 3"), "%s", text)
	// So is that of a setting with which no rank can join.
	for _, p := range launch(t, "size", 2, "RMA_DEVICE=SHM") {
		status, _, stderr := p.end()
		require.Equal(t, 1, status)
		require.True(t, strings.HasPrefix(stderr, name+`: world: Init: invalid environment: device "SHM"`), stderr)
		require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
	}
	status, _, stderr = launch(t, "panic", 1)[0].end()
	require.Equal(t, 2, status)
	require.Contains(t, stderr, "panic: the body panics")
}

// A body of Main has its World, also under a launcher, and can make no other.
func TestInitInABodyOfMain(t *testing.T) {
	t.Parallel()
	for rank, p := range append(launch(t, "again", 2), newProgram(t, "again", "RMA_RANKS=1").start(t)) {
		status, _, stderr := p.end()
		require.Equal(t, 1, status)
		require.Contains(t, stderr, fmt.Sprintf(": world: rank %d: Init: already initialized: this rank is one of Run, Main or Simulate; use the World that its body gets\n", rank%2))
	}
}

// A signal ends the context of the body, unless it was ignored at the start, and a second one the process.
func TestMainSignals(t *testing.T) {
	t.Parallel()
	// A signal that is caught here is not ignored in what the test starts, also where this process was started so.
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
	for _, test := range []struct {
		body   string
		signal syscall.Signal
		status int
		says   string
	}{
		{"wait", syscall.SIGINT, 128 + int(syscall.SIGINT), ": world: rank 0: context canceled\n"},
		{"wait", syscall.SIGTERM, 128 + int(syscall.SIGTERM), ": world: rank 0: context canceled\n"},
		{"obey", syscall.SIGTERM, 0, ""},
	} {
		for _, p := range append(launch(t, test.body, 1), newProgram(t, test.body, "RMA_RANKS=1").start(t)) {
			requireLine(t, "waits", p.printed)
			require.NoError(t, p.Process.Signal(test.signal))
			status, _, stderr := p.end()
			require.Equal(t, test.status, status, stderr)
			require.True(t, strings.HasSuffix(stderr, test.says), stderr)
			require.Equal(t, strings.Count(test.says, "\n"), strings.Count(stderr, "\n"), stderr)
		}
	}
	p := newProgram(t, "ignore", "RMA_RANKS=1").start(t)
	requireLine(t, "waits", p.printed)
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	requireLine(t, "goes on", p.printed)
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	_ = p.Wait()
	require.Equal(t, syscall.SIGTERM, p.ProcessState.Sys().(syscall.WaitStatus).Signal())

	p = newProgram(t, "wait", "RMA_RANKS=1")
	p.Path, p.Args = "/bin/sh", append([]string{"sh", "-c", `trap "" INT; exec "$0" "$@"`}, p.Args...)
	p.start(t)
	requireLine(t, "waits", p.printed)
	require.NoError(t, p.Process.Signal(syscall.SIGINT))
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	status, _, stderr := p.end()
	require.Equal(t, 128+int(syscall.SIGTERM), status, stderr)
}

// A rank that waits for others to close their Worlds does not do so for long after a signal.
func TestMainCloses(t *testing.T) {
	t.Parallel()
	programs := launch(t, "serve", 2)
	for _, p := range programs {
		requireLine(t, "waits", p.printed)
	}
	require.NoError(t, programs[0].Process.Signal(syscall.SIGTERM))
	status, _, stderr := programs[0].end()
	require.Equal(t, 128+int(syscall.SIGTERM), status, stderr)
	require.Contains(t, stderr, ": world: rank 0: Main: the other ranks have not closed their Worlds 1s after: received SIGTERM\n")
	require.NoError(t, programs[1].Process.Kill())
	programs[1].end()
}

// A program that calls Run under a launcher is told what it does, by rank 0, unless it is a rank of a job of one.
func TestRunLaunched(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2} {
		for rank, p := range launch(t, "run", n) {
			status, stdout, stderr := p.end()
			require.Zero(t, status, stderr)
			require.Contains(t, stdout, "ranks 2 fabric\n")
			require.Equal(t, n > 1 && rank == 0, strings.Contains(stderr, "each process makes ranks of its own"), stderr)
			require.Equal(t, n > 1 && rank == 0, strings.Contains(stderr, `call=Run "ranks of each process"=2 processes=`+strconv.Itoa(n)), stderr)
		}
	}
	_, _, stderr := newProgram(t, "run").start(t).end()
	require.Empty(t, stderr)
}

// The first of several processes of a launcher that serves no PMI-1 says that each has a job of its own. That is no news to a rank of a job.
func TestForeignLauncher(t *testing.T) {
	t.Parallel()
	const warning = "a launcher without PMI-1 has started several processes, and each has a job of its own"
	for _, c := range []struct {
		environment []string
		warns       string
	}{
		{[]string{"OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_RANK=0"}, "OMPI_COMM_WORLD_SIZE=4"},
		{[]string{"SLURM_STEP_NUM_TASKS=2", "SLURM_PROCID=0"}, "SLURM_STEP_NUM_TASKS=2"},
		{[]string{"SLURM_STEP_NUM_TASKS=2"}, "SLURM_STEP_NUM_TASKS=2"},
		{[]string{"OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_RANK=1", "SLURM_STEP_NUM_TASKS=2", "SLURM_PROCID=0"}, ""},
		{[]string{"OMPI_COMM_WORLD_SIZE=1", "OMPI_COMM_WORLD_RANK=0"}, ""},
		{[]string{"OMPI_COMM_WORLD_SIZE=many"}, ""},
		{[]string{"SLURM_NTASKS=4", "SLURM_PROCID=0"}, ""},
	} {
		for body, says := range map[string]string{"init": `call=Init "ranks of each process"=1 `, "run": `call=Run "ranks of each process"=2 `, "size": `call=Run "ranks of each process"=3 `} {
			environment := c.environment
			if body == "size" {
				environment = append(environment[:len(environment):len(environment)], "RMA_RANKS=3")
			}
			status, _, stderr := newProgram(t, body, environment...).start(t).end()
			require.Zero(t, status, stderr)
			if c.warns == "" {
				require.Empty(t, stderr, "%s, %v", body, environment)
				continue
			}
			require.Equal(t, 1, strings.Count(stderr, warning), "%s, %v: %s", body, environment, stderr)
			require.Contains(t, stderr, says+c.warns)
		}
	}
	for _, body := range []string{"init", "size"} {
		for _, p := range launch(t, body, 2, "SLURM_STEP_NUM_TASKS=2", "SLURM_PROCID=0", "OMPI_COMM_WORLD_SIZE=2") {
			status, _, stderr := p.end()
			require.Zero(t, status, stderr)
			require.Empty(t, stderr)
		}
	}
}
