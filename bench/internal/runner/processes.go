package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/onesided/rma/bench/internal/cases"
	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/bench/internal/plan"
	"github.com/onesided/rma/bench/internal/program"
	"github.com/onesided/rma/internal/bootstrap/pmi"
)

// firstFile is the descriptor of a process's link.
const firstFile = 3

// runProcesses measures a job whose ranks are processes of this program. They find the job in their environment and
// report the results of rank 0 as JSON. The output of a failed rank goes to stderr. If none failed, that of all ranks
// does, for example a table of RMA_STATS=-.
func runProcesses(ctx context.Context, o *Options, j plan.Job, stderr io.Writer, report func(plan.Result) error) error {
	executable, err := os.Executable()
	if err != nil {
		return fmt.Errorf("bench: own program: %w", err)
	}
	// Ranks die with the thread that started them: see program.DieWithParent.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, o.Timeout+program.GracePeriod)
	defer cancel()
	l, err := o.links(j)
	if err != nil {
		return err
	}
	c := &processes{ranks: j.Ranks, links: l, cancel: cancel, ended: make(chan error, j.Ranks)}
	for rank := 0; rank < j.Ranks && err == nil; rank++ {
		err = c.start(exec.CommandContext(limited, executable, childArguments(o, j)...), rank, report)
	}
	if err != nil {
		cancel()
	}
	failure := c.wait()
	closed := l.close()
	var rank *rankError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return err
	case failure != nil && time.Since(began) >= o.Timeout:
		return o.notInTime(failure)
	case errors.As(failure, &rank):
		_, _ = io.WriteString(stderr, rank.output)
	case failure == nil:
		for _, output := range c.outputs {
			_, _ = io.WriteString(stderr, output.String())
		}
	}
	return errors.Join(failure, closed)
}

// notInTime returns the error of a job that exceeded its time. A rank that ended itself for that reason has reported
// it already, with its cell.
func (o *Options) notInTime(failure error) error {
	told := failure.Error()
	if _, at, found := strings.Cut(told, program.TimeoutFlag+": "); found {
		told = at
	}
	return fmt.Errorf("%w: %v%s: %s", program.ErrTimeout, o.Timeout, program.TimeoutFlag, strings.TrimPrefix(told, "bench: "))
}

// links connect the processes of a job. of returns the file that a rank finds open as firstFile, and the variables
// that describe it.
type links struct {
	of    func(rank int) (*os.File, []string, error)
	close func() error
}

func (o *Options) links(j plan.Job) (*links, error) {
	if j.Cells[0].Case.Kind == cases.Raw {
		return socketLinks()
	}
	server := pmi.NewServer(j.Ranks, pmi.Events{})
	return &links{
		of: func(rank int) (*os.File, []string, error) {
			file, environment, err := server.Child(rank, firstFile)
			return file, append(environment, device.Variable+"="+o.Device), err
		},
		close: server.Close,
	}, nil
}

// childArguments returns the command line of a rank.
func childArguments(o *Options, j plan.Job) []string {
	args := append(slices.Clone(o.Words), "-device", o.Device, "-format", "json", "-timeout", o.Timeout.String())
	if o.Measure == nil {
		args = append(args, "-repeat", fmt.Sprint(o.Repeat))
	}
	args = append(args, o.Arguments...)
	if o.Shorten > 1 {
		args = append(args, "-shorten", fmt.Sprint(o.Shorten))
	}
	if o.Allocs {
		args = append(args, "-allocs")
	}
	if o.Percentiles {
		args = append(args, "-percentiles")
	}
	if o.Profile != "" {
		args = append(args, "-cpuprofile", o.Profile)
	}
	if o.Trace != "" {
		args = append(args, "-trace", o.Trace)
	}
	for _, setting := range o.Settings.Given {
		args = append(args, "-set", setting)
	}
	for _, one := range plan.ByCase([]plan.Job{j}) {
		text := one.Cells[0].String()
		for _, more := range one.Cells[1:] {
			text += fmt.Sprint(",", more.Size)
		}
		args = append(args, text)
	}
	return args
}
