package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"

	"github.com/onesided/rma/internal/bootstrap/pmi"
	"github.com/onesided/rma/internal/tty"
)

// managerFile is the descriptor by which a rank reaches its manager.
const managerFile = 3

// start starts all ranks. A rank's death signal is tied to the thread that starts it. So one thread, which lives as
// long as rmarun, starts them all.
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
		j.processes[r.pid] = r
	}
	return nil
}

func (j *job) startRank(program string, number int) (*rank, error) {
	manager, environment, err := j.server.Child(number, managerFile)
	if err != nil {
		return nil, err
	}
	defer manager.Close()
	life, err := newDeathPipe()
	if err != nil {
		return nil, err
	}
	defer life.started()
	r := &rank{number: number, life: life}
	c := exec.Command(program, j.options.arguments...)
	c.Env = append(os.Environ(), environment...)
	c.Env = append(c.Env, pmi.Share(j.options.ranks)...)
	c.Env = append(c.Env, fmt.Sprintf("MPI_LOCALRANKID=%d", number), fmt.Sprintf("MPI_LOCALNRANKS=%d", j.options.ranks))
	c.Env = append(c.Env, j.options.environment...)
	c.ExtraFiles = append([]*os.File{manager}, life.files()...)
	c.SysProcAttr = attributes()
	if number == 0 {
		c.Stdin = os.Stdin
	}
	label := ""
	if j.options.label {
		label = fmt.Sprintf("[%*d] ", len(fmt.Sprint(j.options.ranks-1)), number)
	}
	var copied sync.WaitGroup
	var writers []*os.File
	defer func() {
		for _, w := range writers {
			_ = w.Close()
		}
	}()
	open := func(o *output) (*os.File, error) {
		file, to, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		writers = append(writers, to)
		from := &stream{File: file}
		r.streams = append(r.streams, from)
		copied.Go(func() {
			o.pass(from, label, &r.kept)
			_ = from.Close()
		})
		return to, nil
	}
	errout, err := open(j.errout)
	if err != nil {
		return nil, err
	}
	if label == "" && j.errout.shown {
		c.Env = append(c.Env, tty.Through(errout))
	}
	// On one terminal the two streams of a rank are one pipe, so that they keep their order: a line may overwrite
	// another.
	c.Stdout, c.Stderr = errout, errout
	if j.out != j.errout {
		if c.Stdout, err = open(j.out); err != nil {
			return nil, err
		}
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	r.pid = c.Process.Pid
	life.tie(r.pid)
	go func() {
		copied.Wait()
		j.silent <- r
	}()
	return r, nil
}
