package window

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/internal/job"
)

// WaitAll waits until all requests are complete, and returns the errors of those that failed, joined. If ctx ends first its error is among
// them, and some requests may be incomplete: they can be waited for again. Requests may belong to several windows of this rank.
func WaitAll(ctx context.Context, requests ...Request) error {
	p, err := newPending(ctx, "WaitAll", requests)
	if err != nil {
		return err
	}
	var failed []error
	for i, err := range p.ended() {
		if i < 0 || err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// WaitAny waits until one of the requests is complete, and returns the index of the first one that is, with its error. If ctx ends
// first it returns -1 and an error that wraps that of ctx. At least one request is needed. To wait for one after the other,
// use [Completed].
func WaitAny(ctx context.Context, requests ...Request) (int, error) {
	p, err := newPending(ctx, "WaitAny", requests)
	if err != nil {
		return -1, err
	}
	if len(requests) == 0 {
		return -1, fmt.Errorf("window: WaitAny: %w: no requests", ErrArgument)
	}
	for i, err := range p.ended() {
		return i, err
	}
	return -1, nil
}

// Completed yields the index of each request once, in the order in which they complete, with its error. If ctx ends first, or the arguments are
// wrong, it yields -1 and that error at last.
func Completed(ctx context.Context, requests ...Request) iter.Seq2[int, error] {
	p, err := newPending(ctx, "Completed", requests)
	if err != nil {
		return func(yield func(int, error) bool) { yield(-1, err) }
	}
	return p.ended()
}

// pending are requests that a call waits for.
type pending struct {
	ctx      context.Context
	call     string
	requests []Request
	// world is that of the first request that is not complete, nil if none has one. Its waits see the progress of all.
	world *job.World
}

func newPending(ctx context.Context, call string, requests []Request) (*pending, error) {
	if err := checkContext(ctx, call); err != nil {
		return nil, err
	}
	p := &pending{ctx: ctx, call: call, requests: requests}
	for _, r := range requests {
		switch {
		case r.deferred == nil:
		case p.world == nil:
			p.world = r.deferred.core.world
		case !p.world.Accompanies(r.deferred.core.world):
			return nil, fmt.Errorf("window: %s: %w: requests of windows of different jobs; wait for those of each job by themselves", call, ErrArgument)
		}
	}
	return p, nil
}

// ended yields the requests as they end, and -1 with the error of the context if that ends first.
//
// Each round tests every request that is left. The first round has the queues of all targets sent, so that their operations
// are on their way at the same time.
func (p *pending) ended() iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		left := len(p.requests)
		var few [64]bool
		over := few[:min(left, len(few))]
		if left > len(few) {
			over = make([]bool, left)
		}
		round := func() (more bool) {
			for i, r := range p.requests {
				if over[i] {
					continue
				}
				if done, err := r.Test(); done || err != nil {
					over[i] = true
					if left--; !yield(i, err) {
						return false
					}
				}
			}
			return left > 0
		}
		if !round() {
			return
		}
		defer p.world.EndSpan(p.call, p.world.BeginSpan())
		wait := p.world.NewWaiter()
		defer wait.Finish()
		for {
			if err := wait.Pause(p.ctx); err != nil {
				yield(-1, errtext.Errorf("window: %s: %w", p.call, err))
				return
			}
			if !round() {
				return
			}
		}
	}
}
