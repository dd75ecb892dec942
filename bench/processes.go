package main

import (
	"context"
	"encoding/json"
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

// A rankError reports a failed process of ours.
type rankError struct {
	rank, ranks int
	cause       error
	output      string // the end of its standard error
}

// Error returns one line.
func (e *rankError) Error() string {
	return fmt.Sprintf("bench: rank %d of %d: %s", e.rank, e.ranks, program.Reason(e.cause, e.output))
}

func (e *rankError) Unwrap() error { return e.cause }

// runProcesses measures a job whose ranks are processes of this program. They find the job in their environment and
// report the results of rank 0 as JSON. The output of a failed rank goes to stderr. If none failed, that of all ranks
// does, for example a table of RMA_STATS=-.
func runProcesses(ctx context.Context, o *options, j plan.Job, stderr io.Writer, report func(plan.Result) error) error {
	executable, err := os.Executable()
	if err != nil {
		return fmt.Errorf("bench: own program: %w", err)
	}
	// Ranks die with the thread that started them: see program.DieWithParent.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, o.timeout+program.GracePeriod)
	defer cancel()
	l, err := o.links(j)
	if err != nil {
		return err
	}
	c := &crew{ranks: j.Ranks, links: l, cancel: cancel, ended: make(chan error, j.Ranks)}
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
	case failure != nil && time.Since(began) >= o.timeout:
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
func (o *options) notInTime(failure error) error {
	told := failure.Error()
	if _, at, found := strings.Cut(told, program.TimeoutFlag+": "); found {
		told = at
	}
	return fmt.Errorf("%w: %v%s: %s", program.ErrTimeout, o.timeout, program.TimeoutFlag, strings.TrimPrefix(told, "bench: "))
}

// links connect the processes of a job. of returns the file that a rank finds open as firstFile, and the variables
// that describe it.
type links struct {
	of    func(rank int) (*os.File, []string, error)
	close func() error
}

func (o *options) links(j plan.Job) (*links, error) {
	if j.Cells[0].Case.Kind == cases.Raw {
		return socketLinks()
	}
	server := pmi.NewServer(j.Ranks, pmi.Events{})
	return &links{
		of: func(rank int) (*os.File, []string, error) {
			file, environment, err := server.Child(rank, firstFile)
			return file, append(environment, device.Variable+"="+o.device), err
		},
		close: server.Close,
	}, nil
}

// A crew is the processes of a job.
type crew struct {
	ranks   int
	links   *links
	cancel  func()
	started int
	outputs []*program.LastOutput // the standard error of each process that was started
	ended   chan error            // one error of each process that was started
}

// start starts a rank. The results of rank 0 are reported as they arrive.
func (c *crew) start(cmd *exec.Cmd, rank int, report func(plan.Result) error) error {
	link, environment, err := c.links.of(rank)
	if err != nil {
		return err
	}
	defer link.Close()
	var results io.Reader
	if rank == 0 {
		if results, err = cmd.StdoutPipe(); err != nil {
			return err
		}
	}
	output := new(program.LastOutput)
	cmd.ExtraFiles = []*os.File{link}
	cmd.Env = append(device.WithoutLauncher(os.Environ()), environment...)
	cmd.Env = append(cmd.Env, pmi.Share(c.ranks)...)
	cmd.Stderr = output
	cmd.WaitDelay = program.GracePeriod
	program.DieWithParent(cmd)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("bench: rank %d of %d: %w", rank, c.ranks, err)
	}
	c.started++
	c.outputs = append(c.outputs, output)
	go func() {
		err := relay(results, report)
		if err != nil {
			c.cancel()
		}
		if cause := cmd.Wait(); cause != nil && err == nil {
			err = &rankError{rank, c.ranks, cause, output.String()}
		}
		c.ended <- err
	}()
	return nil
}

// wait returns when all have ended, with the first error that is not a result of another rank's. After an error the
// others have a moment to end by themselves.
func (c *crew) wait() (first error) {
	for range c.started {
		err := <-c.ended
		if err != nil && first == nil {
			defer time.AfterFunc(program.GracePeriod, c.cancel).Stop()
		}
		if err != nil && (first == nil || ofPeer(first) && !ofPeer(err)) {
			first = err
		}
	}
	return first
}

// ofPeer reports whether a rank failed because another did.
func ofPeer(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.ExitCode() == statusOfPeer
}

// relay reports the results that arrive from rank 0 until it ends. Other ranks have no results.
func relay(results io.Reader, report func(plan.Result) error) error {
	if results == nil {
		return nil
	}
	decoder := json.NewDecoder(results)
	for {
		var r plan.Result
		err := decoder.Decode(&r)
		switch {
		case err == io.EOF, errors.Is(err, io.ErrUnexpectedEOF):
			return nil // the exit status says more
		case err != nil:
			return fmt.Errorf("bench: result of rank 0: %w", err)
		}
		if err := report(r); err != nil {
			return err
		}
	}
}

// childArguments returns the command line of a rank.
func childArguments(o *options, j plan.Job) []string {
	args := append(slices.Clone(o.words), "-device", o.device, "-format", "json", "-timeout", o.timeout.String())
	if o.measure == nil {
		args = append(args, "-repeat", fmt.Sprint(o.repeat))
	}
	args = append(args, o.arguments...)
	if o.shorten > 1 {
		args = append(args, "-shorten", fmt.Sprint(o.shorten))
	}
	if o.allocs {
		args = append(args, "-allocs")
	}
	if o.percentiles {
		args = append(args, "-percentiles")
	}
	if o.profile != "" {
		args = append(args, "-cpuprofile", o.profile)
	}
	if o.trace != "" {
		args = append(args, "-trace", o.trace)
	}
	for _, thrown := range o.settings.Given {
		args = append(args, "-set", thrown)
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
