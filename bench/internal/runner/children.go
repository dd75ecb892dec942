package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/bench/internal/plan"
	"github.com/onesided/rma/bench/internal/program"
	"github.com/onesided/rma/internal/bootstrap/pmi"
)

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

// A processes is the processes of a job.
type processes struct {
	ranks   int
	links   *links
	cancel  func()
	started int
	outputs []*program.LastOutput // the standard error of each process that was started
	ended   chan error            // one error of each process that was started
}

// start starts a rank. The results of rank 0 are reported as they arrive.
func (c *processes) start(cmd *exec.Cmd, rank int, report func(plan.Result) error) error {
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
		err := readResults(results, report)
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
func (c *processes) wait() (first error) {
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
	return errors.As(err, &exit) && exit.ExitCode() == StatusOfPeer
}

// readResults reports the results that arrive from rank 0 until it ends. Other ranks have no results.
func readResults(results io.Reader, report func(plan.Result) error) error {
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
