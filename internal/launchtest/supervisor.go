package launchtest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"
)

// supervisorVariable makes a process of a test binary a supervisor. Its value is a supervisorConfig.
const supervisorVariable = "RMA_LAUNCHTEST_SUPERVISOR"

// Limit bounds a command: all of its processes are killed after it.
const Limit = 2 * time.Minute

// A supervisorConfig says how a supervisor runs its command, which is in its arguments.
type supervisorConfig struct {
	// Limit, if not 0, is the time limit of the command.
	Limit time.Duration
	// User, if not 0, is the user as which the command runs.
	User int
	// Beside are commands that run at the same time. All end with the first that ends.
	Beside [][]string
	// Later are commands like those of Beside that start when a process listens at the address Listens.
	Later   [][]string
	Listens string
	// Remove, if not empty, is a directory that is removed at the end.
	Remove string
}

// A supervisedCommand is a command under a supervisor.
type supervisedCommand struct {
	*exec.Cmd
	// Closing life ends the command. done ends when none of its processes is left. The others are the supervisor's ends
	// of these pipes.
	life, done       *os.File
	itsLife, itsDone *os.File
}

// supervise returns a command that runs under a supervisor, or a supervisor alone if there are no arguments. The caller
// must call finish at the end.
func supervise(ctx context.Context, o supervisorConfig, arguments ...string) (*supervisedCommand, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("launchtest: finding the test binary: %w", err)
	}
	text, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("launchtest: writing the configuration of a supervisor: %w", err)
	}
	k := &supervisedCommand{Cmd: exec.CommandContext(ctx, self, arguments...)}
	if k.itsLife, k.life, err = os.Pipe(); err != nil {
		return nil, fmt.Errorf("launchtest: %w", err)
	}
	if k.done, k.itsDone, err = os.Pipe(); err != nil {
		_ = k.life.Close()
		_ = k.itsLife.Close()
		return nil, fmt.Errorf("launchtest: %w", err)
	}
	k.ExtraFiles = []*os.File{k.itsLife, k.itsDone}
	k.Cancel = k.life.Close
	// A supervisor ends by itself. The delay is for a broken one.
	k.WaitDelay = time.Minute
	k.Env = append(environment(), supervisorVariable+"="+string(text))
	return k, nil
}

// finish ends the command and returns when none of its processes is left. It may be called for a command that was not
// started.
func (k *supervisedCommand) finish() {
	_ = k.life.Close()
	_ = k.itsLife.Close()
	_ = k.itsDone.Close()
	_, _ = io.Copy(io.Discard, k.done)
	_ = k.done.Close()
}

// newCommand returns a command that is finished when the test ends.
func newCommand(ctx context.Context, t testing.TB, o supervisorConfig, arguments ...string) *supervisedCommand {
	t.Helper()
	k, err := supervise(ctx, o, arguments...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.finish)
	return k
}

// environment returns this process's environment without the variables of a launcher. With the race detector a
// process sleeps a second before it ends, unless GORACE says otherwise.
func environment() []string {
	var kept []string
	for _, variable := range os.Environ() {
		if !foreign(variable) {
			kept = append(kept, variable)
		}
	}
	return append(kept, strings.TrimSpace("GORACE="+os.Getenv("GORACE")+" atexit_sleep_ms=0"))
}

func foreign(variable string) bool {
	for _, prefix := range []string{"PMI_", "PMIX_", "SLURM_", "SLURMD_", "SRUN_", "MPI_LOCAL", "HYDI_", "HYDRA_", "OMPI_", "GORACE=", supervisorVariable} {
		if strings.HasPrefix(variable, prefix) {
			return true
		}
	}
	return false
}

// need skips the test if a launcher cannot run.
func need(t testing.TB, programs ...string) (paths []string) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skipf("skipped: launchers need Linux, this is %s", runtime.GOOS)
	}
	for _, program := range programs {
		path, err := find(program)
		if err != nil {
			t.Skipf("skipped: %s is not installed", program)
		}
		paths = append(paths, path)
	}
	return paths
}

// find looks for a program also in the directories of daemons.
func find(program string) (string, error) {
	path, err := exec.LookPath(program)
	for _, dir := range []string{"/usr/sbin", "/usr/local/sbin"} {
		if err == nil {
			break
		}
		path, err = exec.LookPath(dir + "/" + program)
	}
	return path, err
}
