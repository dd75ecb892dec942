package job

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/onesided/rma/internal/interrupt"
	"github.com/onesided/rma/verbs/sim"
)

// Variables of the environment that Main reads.
const (
	ranksVariable    = "RMA_RANKS"
	simulateVariable = "RMA_SIMULATE"
	deviceVariable   = "RMA_DEVICE"
)

// closeTime is how long a rank of Main waits for others when it is to end before its job does.
const closeTime = time.Second

// Main runs body on the ranks that the environment selects, and ends the process if a rank fails.
func Main(body func(ctx context.Context, w *World) error, options ...Option) {
	ctx, stop := interrupt.Context(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	leave, err := runProgram(ctx, body, options)
	if err == nil {
		return
	}
	status := 1
	if ended, ok := context.Cause(ctx).(interrupt.Error); ok {
		status = 128 + int(ended.Signal.(syscall.Signal))
	}
	fmt.Fprintf(os.Stderr, "%s: %v\n", filepath.Base(os.Args[0]), err)
	if leave != nil {
		stop()
		_ = inTime(ctx, leave)
	}
	os.Exit(status)
}

// runProgram runs body on the ranks that the environment asks for. A rank of a launcher's job that has failed is to leave it by
// the function that runProgram returns.
func runProgram(ctx context.Context, body func(ctx context.Context, w *World) error, options []Option) (leave func() error, err error) {
	if body == nil {
		return nil, fmt.Errorf("world: Main: %w: nil body", ErrArgument)
	}
	ranks, simulator, err := choose()
	switch {
	case err != nil:
		return nil, fmt.Errorf("world: Main: %w: %w", ErrEnvironment, err)
	case simulator != nil:
		return nil, Simulate(ctx, simulator, ranks, body, options...)
	case ranks > 0:
		return nil, Run(ctx, ranks, body, options...)
	}
	w, err := Init(ctx, options...)
	if err != nil {
		return nil, err
	}
	if err = callBody(ctx, body, w); err != nil {
		return func() error { return w.departFailed(err) }, &RankError{w.rank, err}
	}
	if err = inTime(ctx, w.closeAll); err != nil {
		return nil, &RankError{w.rank, err}
	}
	return nil, nil
}

// choose reads how many ranks this process makes, 0 if it is one of a launcher's job, and the simulator that they are to
// run in, if any.
func choose() (ranks int, simulator *sim.Simulator, err error) {
	count, profile := os.Getenv(ranksVariable), os.Getenv(simulateVariable)
	for _, name := range []string{"PMI_FD", "PMI_PORT", "PMI_RANK", "PMI_SIZE", "PMI_ID", "RMA_ROOT", "RMA_RANK", "RMA_SIZE"} {
		value := os.Getenv(name)
		if value == "" {
			continue
		}
		for _, makes := range []string{ranksVariable, simulateVariable} {
			if by := os.Getenv(makes); by != "" {
				return 0, nil, fmt.Errorf("%s=%q makes this process a rank of a launcher's job, and %s=%q has it make ranks itself: unset one or the other", name, value, makes, by)
			}
		}
		return 0, nil, nil
	}
	ranks = runtime.GOMAXPROCS(0)
	if count != "" {
		if ranks, err = strconv.Atoi(count); err != nil || ranks < 1 || ranks > MaxRanks {
			return 0, nil, fmt.Errorf("%s=%q must be the number of ranks, 1 to %d", ranksVariable, count, MaxRanks)
		}
	}
	if profile == "" {
		return ranks, nil, nil
	}
	if device := os.Getenv(deviceVariable); device != "" {
		return 0, nil, fmt.Errorf("%s=%q simulates the cards of the ranks, and %s=%q selects a device of this machine: unset one or the other", simulateVariable, profile, deviceVariable, device)
	}
	p, err := sim.ByName(profile)
	if err == nil {
		simulator, err = sim.New(p, 1)
	}
	if err != nil {
		return 0, nil, fmt.Errorf("%s=%q: %w", simulateVariable, profile, err)
	}
	return ranks, simulator, nil
}

// inTime calls f, and returns an error if f has not returned closeTime after ctx has ended.
func inTime(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(closeTime):
		return fmt.Errorf("world: Main: the other ranks have not closed their Worlds %v after: %w", closeTime, context.Cause(ctx))
	}
}
