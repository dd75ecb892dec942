package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// ErrTimeout reports that a job took longer than -timeout.
var ErrTimeout = errors.New("not done in time")

// TimeoutFlag follows the time in a message of ErrTimeout if it is that of the flag.
const TimeoutFlag = " (-timeout)"

// ErrNoResult reports that a job has succeeded without printing its results.
var ErrNoResult = errors.New("ended without a result")

// GracePeriod is how long after -timeout a launcher may take to notice that its ranks have ended themselves.
const GracePeriod = 10 * time.Second

// Run runs a launcher and returns its standard output. The launcher must end itself and the ranks within timeout.
// After grace more it is ended.
func Run(ctx context.Context, argv, env []string, timeout, grace time.Duration) (string, error) {
	// This time begins before that of the context, so a command that the context ends has used it up.
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, timeout+grace)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = env
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = GracePeriod
	TerminateFirst(cmd)
	err := cmd.Run()
	switch {
	case err != nil && time.Since(start) >= timeout:
		err = fmt.Errorf("%w: %v", ErrTimeout, timeout)
	case err != nil:
		err = errors.New(Reason(err, stdout.String()+"\n"+stderr.String()))
	}
	return stdout.String(), err
}

// Reason says why a launcher failed: how it ended, and the most informative line of its output.
func Reason(err error, output string) string {
	telling := ""
	for line := range strings.Lines(output) {
		line = strings.Trim(strings.TrimSpace(line), "=- ")
		if rest, ok := strings.CutPrefix(line, "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: "); ok {
			return rest
		}
		if _, rest, ok := strings.Cut(line, "exited on "); ok {
			return strings.TrimSuffix(rest, ".")
		}
		// Lines of rmarun count if the ranks wrote none, and the first of them the most.
		rest, added := strings.CutPrefix(line, "rmarun: ")
		added = added || strings.HasSuffix(line, " -h explains the usage")
		if line != "" && (!added || telling == "") {
			telling = rest
		}
	}
	if telling == "" {
		return err.Error()
	}
	return err.Error() + ": " + telling
}
