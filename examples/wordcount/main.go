package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync/atomic"
	"syscall"

	"github.com/onesided/rma/internal/interrupt"
	"github.com/onesided/rma/internal/tty"
	"github.com/onesided/rma/world"
)

func main() {
	ctx, _ := interrupt.Context(context.Background(), os.Interrupt, syscall.SIGTERM)
	os.Exit(command(ctx, os.Args[1:], os.Stdout, os.Stderr, tty.Shows(os.Stderr)))
}

// command carries out a command line as a rank of the job for which this process was started. It returns the exit
// status.
func command(ctx context.Context, arguments []string, out, errout io.Writer, terminal bool) int {
	o, wrong := parse(arguments)
	// Warnings show users who start ranks by hand which ranks are missing, and why.
	logger := slog.New(slog.NewTextHandler(errout, &slog.HandlerOptions{Level: slog.LevelWarn}))
	w, err := world.Init(ctx, world.WithLogger(logger))
	if err == nil && wrong == nil && o.ranks > 0 && w.Size() > 1 {
		wrong = fmt.Errorf("%w: -ranks %d in a job of %d ranks: leave it out under a launcher", errUsage, o.ranks, w.Size())
	}
	if wrong != nil {
		if err == nil {
			defer w.Close()
		}
		return explain(wrong, err != nil || w.Rank() == 0, out, errout)
	}
	if err != nil {
		fmt.Fprintf(errout, "wordcount: %v\n", err)
		return 1
	}
	j := &job{options: o, out: out, errout: errout, terminal: terminal}
	if o.ranks > 1 {
		err = errors.Join(w.Close(), j.runHere(ctx, errout))
	} else {
		err = j.runAs(ctx, w)
	}
	if err != nil {
		return 1
	}
	return 0
}

// explain prints the help, or the error of the command line.
func explain(wrong error, speak bool, out, errout io.Writer) int {
	if errors.Is(wrong, flag.ErrHelp) {
		if speak {
			help(out)
		}
		return 0
	}
	if speak {
		fmt.Fprintf(errout, "wordcount: %v\nwordcount -h explains the usage\n", wrong)
	}
	return 2
}

// runAs runs the job as a rank. It closes the World if all ranks agree on how the job ended. Otherwise the other ranks
// notice the end of the process.
func (j *job) runAs(ctx context.Context, w *world.World) error {
	err := j.run(ctx, w)
	if err != nil && (ctx.Err() != nil || len(w.Failures()) > 0) {
		return err
	}
	if e := w.Close(); e != nil {
		fmt.Fprintf(j.errout, "wordcount: %v\n", e)
		err = errors.Join(err, e)
	}
	return err
}

// runHere runs the job's ranks as goroutines.
func (j *job) runHere(ctx context.Context, errout io.Writer) error {
	var told atomic.Bool
	err := world.Run(ctx, j.ranks, func(ctx context.Context, w *world.World) error {
		err := j.runAs(ctx, w)
		if err != nil {
			told.Store(true)
		}
		return err
	})
	if err != nil && !told.Load() {
		fmt.Fprintf(errout, "wordcount: %v\n", err)
	}
	return err
}
