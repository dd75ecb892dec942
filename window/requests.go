package window

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/scheduler"
	"github.com/onesided/rma/world"
)

// WaitAll waits until all requests are complete. It returns the errors of those that failed, joined. An error concerns the
// buffers of its own request only. If ctx ends first, the error wraps that of ctx, and the requests can be waited for
// again. The requests are of windows of one rank, in its World and the teams of that.
func WaitAll(ctx context.Context, requests ...Request) error {
	if err := checkTogether(ctx, "WaitAll", requests); err != nil {
		return err
	}
	first := slices.IndexFunc(requests, func(r Request) bool { return r.deferred != nil })
	if first < 0 {
		return nil
	}
	const call = "window.WaitAll"
	w := requests[first].deferred.core.world
	defer w.EndSpan("WaitAll", w.BeginSpan())
	depart(ctx, call, requests)
	var failed []error
	for i := range requests {
		if requests[i].deferred == nil {
			continue
		}
		if err := requests[i].await(ctx, call); err != nil {
			failed = append(failed, err)
			if ctx.Err() != nil && interrupted(ctx, err) {
				break
			}
		}
	}
	return errors.Join(failed...)
}

// WaitAny waits until a request is complete, and returns its index and its error. If several are complete, it returns the
// lowest index. The index is -1 if the call itself fails: ctx has ended, an argument is wrong, or the process is out of
// file descriptors (verbs.ErrShortage). The requests are of windows of one rank, in its World and the teams of that. At
// least one request is needed. To handle each request once, use [Completed].
func WaitAny(ctx context.Context, requests ...Request) (int, error) {
	if err := checkTogether(ctx, "WaitAny", requests); err != nil {
		return -1, err
	}
	if len(requests) == 0 {
		return -1, fmt.Errorf("window: WaitAny: %w: no requests", ErrArgument)
	}
	p := pending{call: "window.WaitAny", requests: requests}
	return p.next(ctx)
}

// Completed yields the index and the error of each request once, as requests complete. Requests that are found complete at
// the same time come in the order of their indices. If the call itself fails, as that of [WaitAny] may, it yields -1 and
// the error and ends. After a verbs.ErrShortage the request is unfinished, and can be waited for again. A loop may end
// early.
func Completed(ctx context.Context, requests ...Request) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		if err := checkTogether(ctx, "Completed", requests); err != nil {
			yield(-1, err)
			return
		}
		p := pending{call: "window.Completed", requests: requests, over: make([]bool, len(requests))}
		p.completed(ctx, yield)
	}
}

// completed is a function of its own because its name is that of the call in the stack. The compiler may copy the
// closure of Completed into the program.
func (p *pending) completed(ctx context.Context, yield func(int, error) bool) {
	begin(p.call, p.requests)
	for range p.requests {
		i, err := p.next(ctx)
		if i >= 0 {
			p.over[i], p.from = true, i+1
		}
		if !yield(i, err) || i < 0 {
			return
		}
	}
}

// checkTogether returns an error if one wait cannot see the progress of all requests.
func checkTogether(ctx context.Context, call string, requests []Request) error {
	if err := checkContext(ctx, call); err != nil {
		return err
	}
	var last *core
	for i := range requests {
		d := requests[i].deferred
		if d == nil || d.core == last {
			continue
		}
		if last != nil && !last.world.Accompanies(d.core.world) {
			return fmt.Errorf("window: %s: %w: requests of different ranks, or of Worlds that Dial or Shrink made; wait for those of each by themselves", call, ErrArgument)
		}
		last = d.core
	}
	return nil
}

// pending are requests that a call waits for. over marks those that it has returned, nil if none.
type pending struct {
	call     string
	requests []Request
	over     []bool
	// from is the index at which look begins: so Completed tests each request about once a round.
	from int
	// closed is a World that a wait has found closed, nil if none. Its windows are closed, or about to be.
	closed *job.World
}

func (p *pending) left(i int) bool { return p.over == nil || !p.over[i] }

// begin sends the operations of the windows of requests, as a call that blocks must: see beginReading.
func begin(call string, requests []Request) {
	var last *core
	for i := range requests {
		d := requests[i].deferred
		if d == nil || d.core == last {
			continue
		}
		if last = d.core; last.beginReading(noWait, call) == nil {
			last.endReading()
		}
	}
}

// look returns the first request left that is complete or has failed, or -1.
func (p *pending) look() (int, error) {
	for k := range p.requests {
		i := (p.from + k) % len(p.requests)
		if !p.left(i) {
			continue
		}
		done, err := p.requests[i].test(p.call)
		if !done && err == nil && p.closed != nil && p.requests[i].deferred.core.world == p.closed {
			err = errtext.Errorf("%s: %w", errtext.Call("window", p.call), ErrClosed)
		}
		if done || err != nil {
			return i, err
		}
	}
	return -1, nil
}

// next waits for one of the requests left. Its wait ends with it: the caller of Completed may compute, or make other
// calls, before the next one.
func (p *pending) next(ctx context.Context) (int, error) {
	if i, err := p.look(); i >= 0 {
		return i, err
	}
	begin(p.call, p.requests)
	w := p.open()
	defer w.EndSpan(unqualified(p.call), w.BeginSpan())
	wait := w.NewWaiter()
	defer wait.Finish()
	for {
		switch err := wait.Pause(ctx); {
		case job.Is(err, world.ErrClosed):
			p.closed = w
		case err != nil:
			return -1, errtext.Errorf("%s: %w", errtext.Call("window", p.call), err)
		}
		if i, err := p.look(); i >= 0 {
			return i, err
		}
	}
}

// open returns the World of a request left, or nil if none has one.
func (p *pending) open() *job.World {
	for i := range p.requests {
		if d := p.requests[i].deferred; d != nil && p.left(i) {
			return d.core.world
		}
	}
	return nil
}

// depart returns when the operations of all requests have been sent. An operation that waits for a lock or a post must
// not also wait for the completion of another: the target of that one may wait for it. Errors are those of the waits
// for the requests, which follow.
func depart(ctx context.Context, call string, requests []Request) {
	d := stays(call, requests)
	if d == nil {
		return
	}
	begin(call, requests)
	wait := d.core.world.NewWaiter()
	defer wait.Finish()
	for stays(call, requests) != nil && wait.Pause(ctx) == nil {
	}
}

// stays sends what may leave, and returns a queue from which something may leave later, or nil if there is none.
func stays(call string, requests []Request) (first *deferred) {
	var last *deferred
	for i := range requests {
		d := requests[i].deferred
		if d == nil || d == last {
			continue
		}
		last = d
		left, err := d.begin(noWait, scheduler.Nothing)
		d.link.Post()
		if first == nil && (left && err == nil || job.Is(err, context.Canceled)) && requests[i].lost(call, staying) == nil {
			first = d
		}
	}
	return first
}
