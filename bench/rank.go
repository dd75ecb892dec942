package main

import (
	"context"
	"time"

	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// A caseRank is a rank that measures a case.
type caseRank struct {
	w *world.World
	// repeat is the number of loops.
	repeat int
	// shorten divides iterations and times; 0 counts as 1.
	shorten int
	virtual bool // time is virtual
	// options are those of each window.
	options []window.Option
}

// part returns this rank's step of a case, or nil if it only waits in the barrier.
func (r *caseRank) part(c *benchCase) step {
	switch {
	case r.w.Rank() == 0:
		return c.origin
	case r.w.Rank() == 1 || c.scene == fence || c.scene == collective:
		return c.target
	}
	return nil
}

// loop runs f turns times on cells of size n.
func loop(ctx context.Context, b *board, f step, n, turns int) error {
	if f == nil {
		return nil
	}
	for range turns {
		if err := f(ctx, b, n); err != nil {
			return err
		}
	}
	return nil
}

// virtualTurns divides the iterations of a loop in virtual time.
const virtualTurns = 10

// shortened divides a number of iterations, or a time, in a shortened run. The result is at least 1.
func shortened[T int | time.Duration](usual T, shorten int) T {
	return max(usual/T(max(shorten, 1)), 1)
}
