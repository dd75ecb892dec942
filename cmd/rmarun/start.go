package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"time"

	"github.com/onesided/rma/world/pmi"
)

// managerFile is the descriptor at which a rank finds its manager.
const managerFile = 3

// start starts all ranks. A rank's death signal is tied to the thread that starts
// it, so one thread, which lives as long as rmarun, starts them all.
func (j *job) start(program string) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		started <- j.startAll(program)
		select {}
	}()
	return <-started
}

func (j *job) startAll(program string) error {
	for number := range j.options.ranks {
		r, err := j.startRank(program, number)
		if err != nil {
			return fmt.Errorf("starting rank %d: %w", number, err)
		}
		j.ranks = append(j.ranks, r)
	}
	return nil
}

func (j *job) startRank(program string, number int) (*rank, error) {
	manager, environment, err := j.server.Child(number, managerFile)
	if err != nil {
		return nil, err
	}
	defer manager.Close()
	r := &rank{number: number, cmd: exec.Command(program, j.options.arguments...)}
	r.cmd.Env = append(os.Environ(), environment...)
	r.cmd.Env = append(r.cmd.Env, pmi.Share(j.options.ranks)...)
	r.cmd.Env = append(r.cmd.Env, fmt.Sprintf("MPI_LOCALRANKID=%d", number), fmt.Sprintf("MPI_LOCALNRANKS=%d", j.options.ranks))
	r.cmd.Env = append(r.cmd.Env, j.options.environment...)
	r.cmd.ExtraFiles = []*os.File{manager}
	r.cmd.SysProcAttr = attributes()
	if number == 0 {
		input, err := standardInput()
		if err != nil {
			return nil, err
		}
		if input != os.Stdin {
			defer input.Close()
		}
		r.cmd.Stdin = input
	}
	label := ""
	if j.options.label {
		label = fmt.Sprintf("[%*d] ", len(fmt.Sprint(j.options.ranks-1)), number)
	}
	var writers []io.Closer
	defer func() {
		for _, w := range writers {
			_ = w.Close()
		}
	}()
	for _, s := range []struct {
		into *io.Writer
		out  *output
	}{{&r.cmd.Stdout, j.out}, {&r.cmd.Stderr, j.errout}} {
		from, to, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		writers = append(writers, to)
		*s.into = to
		r.copied.Go(func() {
			stream(from, s.out, label, &r.kept)
			_ = from.Close()
		})
	}
	if err := r.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		r.err = r.cmd.Wait()
		j.ends <- end{rank: r}
		r.waitOutput(j.options.outputTime)
		j.ends <- end{rank: r, silent: true}
	}()
	return r, nil
}

// standardInput is rmarun's, for rank 0. A terminal gives its input to the process
// group in the foreground only, which the rank is not in: that is copied, until the rank
// has ended.
func standardInput() (*os.File, error) {
	info, err := os.Stdin.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return os.Stdin, nil
	}
	from, to, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	go func() {
		_, _ = io.Copy(to, os.Stdin)
		_ = to.Close()
	}()
	return from, nil
}

// waitOutput waits for what a rank that has ended has written, and not for longer than limit.
func (r *rank) waitOutput(limit time.Duration) {
	copied := make(chan struct{})
	go func() {
		r.copied.Wait()
		close(copied)
	}()
	select {
	case <-copied:
	case <-time.After(limit):
	}
}
