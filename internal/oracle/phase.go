package oracle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/onesided/rma/window"
)

// begin opens the epochs of a window for a phase.
func (r *runner) begin(win int) error {
	o, y := &r.windows[win], &r.phase.Syncs[win]
	fenced := o.epochs.fenced
	o.epochs.begin(y, r.rank)
	switch {
	case y.Mode == Fenced && !fenced:
		var asserts window.Assert
		if y.NoPrecede {
			asserts = window.NoPrecede
		}
		if y.Assert {
			asserts |= r.promises(win, r.number-1, r.number)
		}
		return r.fence(o, asserts)
	case y.posts(r.rank):
		group, err := o.bytes.Group(y.origins(r.rank)...)
		if err != nil {
			return err
		}
		if err := r.block(func(ctx context.Context) error { return o.bytes.Post(ctx, group) }); err != nil {
			return err
		}
	case y.Mode == AllLocked:
		var asserts window.Assert
		if y.Assert {
			asserts = window.NoCheck
		}
		return r.block(func(ctx context.Context) error { return o.bytes.LockAll(ctx, asserts) })
	}
	if !y.starts(r.rank) {
		return nil
	}
	group, err := o.bytes.Group(y.Targets[r.rank]...)
	if err != nil {
		return err
	}
	return r.block(func(ctx context.Context) error { return o.bytes.Start(ctx, group) })
}

func (r *runner) fence(o *opened, asserts window.Assert) error {
	return r.block(func(ctx context.Context) error { return o.bytes.Fence(ctx, asserts) })
}

// promises returns NoStore and NoPut if they are true: NoStore for the phases until stored, NoPut for the first epoch
// of Fence from phase next on.
func (r *runner) promises(win, stored, next int) window.Assert {
	phases := r.program.Phases
	promises := window.NoStore
	for i := range stored + 1 {
		if slices.ContainsFunc(phases[i].Steps, func(s Step) bool { return s.Call == Store && s.Window == win && s.Rank == r.rank }) {
			promises = 0
		}
	}
	for next < len(phases) && phases[next].Syncs[win].Mode == Idle {
		next++
	}
	if next == len(phases) || !slices.ContainsFunc(phases[next].Steps, func(s Step) bool {
		return s.Window == win && s.Target == r.rank && s.Call.Operates() && (!s.Call.reads() || s.Call.combines())
	}) {
		promises |= window.NoPut
	}
	return promises
}

// end closes the epochs of a window.
func (r *runner) end(win int) error {
	o, y := &r.windows[win], &r.phase.Syncs[win]
	defer o.epochs.end(y)
	switch y.Mode {
	case Fenced:
		var asserts window.Assert
		if y.NoSucceed {
			asserts = window.NoSucceed
		}
		if y.Assert {
			asserts |= r.promises(win, r.number, r.number+1)
		}
		return r.fence(o, asserts)
	case AllLocked:
		return r.block(o.bytes.UnlockAll)
	}
	if o.epochs.started {
		if err := r.block(o.bytes.Complete); err != nil {
			return err
		}
	}
	if !o.epochs.posted {
		return nil
	}
	// A few polls only: a rank that polls on may keep others from running.
	for range 3 {
		if y.Test {
			if ended, err := o.bytes.Test(); ended || err != nil {
				return err
			}
		}
	}
	return r.block(o.bytes.Wait)
}

// A crew is a member of this rank in a phase, with the operations that it has issued.
type crew struct {
	*runner
	member  int
	flights []airborne
	flushes []flushing
}

// A flushing is a flush with a request.
type flushing struct {
	request window.Request
	step    *Step
	index   int
}

// An airborne is a flight and its step.
type airborne struct {
	flight
	step  *Step
	index int
}

// members carries out the steps of all members.
func (r *runner) members() ([]*crew, error) {
	var all []*crew
	for i := range r.phase.Steps {
		if s := &r.phase.Steps[i]; s.Rank == r.rank {
			for len(all) <= s.Member {
				all = append(all, &crew{runner: r, member: len(all)})
			}
		}
	}
	errs := make([]error, len(all))
	var together sync.WaitGroup
	// Member 0 is the last, because it may wait for what others do.
	for i := len(all) - 1; i >= 0; i-- {
		if c := all[i]; r.options.Concurrent && i > 0 {
			together.Go(func() { errs[i] = c.carryOut() })
		} else if errs[i] = c.carryOut(); errs[i] != nil {
			break
		}
	}
	together.Wait()
	return all, errors.Join(errs...)
}

func (c *crew) carryOut() error {
	for i := range c.phase.Steps {
		s := &c.phase.Steps[i]
		if s.Rank != c.rank || s.Member != c.member {
			continue
		}
		done, drop := s, false
		if c.options.mangle != nil {
			done, drop = c.options.mangle(s)
		}
		var err error
		switch {
		case drop:
			if s.reads() {
				c.results[i] = make([]byte, s.elements()*s.Kind.Size())
			}
		case s.Refused:
			err = c.refuse(s, done)
		default:
			err = c.step(done, i)
		}
		if err != nil {
			return fmt.Errorf("step %d: %v: %w", i, s, err)
		}
	}
	return nil
}

// refuse makes a call that must be rejected for the reason that the model predicts for s.
func (c *crew) refuse(s, done *Step) error {
	o := &c.windows[s.Window]
	reasons := c.program.refusals(s, &o.epochs)
	if len(reasons) != 1 {
		return fmt.Errorf("the model knows %d reasons to refuse it", len(reasons))
	}
	err := c.illegal(o, done)
	if err == nil {
		return fmt.Errorf("got no error, allowed is %w", reasons[0])
	}
	if !errors.Is(err, reasons[0]) {
		return fmt.Errorf("got the error %w, allowed is %w", err, reasons[0])
	}
	return nil
}

// illegal makes a call that must be rejected.
func (c *crew) illegal(o *opened, s *Step) error {
	switch s.Call {
	case Fence:
		return o.bytes.Fence(c.ctx, s.Assert)
	case Start, Post, Group:
		group, err := o.bytes.Group(s.Ranks...)
		switch {
		case err != nil || s.Call == Group:
			return err
		case s.Call == Post:
			return o.bytes.Post(c.ctx, group)
		}
		return o.bytes.Start(c.ctx, group)
	case Complete:
		return o.bytes.Complete(c.ctx)
	case WaitExposure:
		return o.bytes.Wait(c.ctx)
	case TestExposure:
		_, err := o.bytes.Test()
		return err
	case Close:
		return o.bytes.Close()
	case View:
		_, err := makers[s.Kind].port(o.bytes)
		return err
	}
	if !s.Call.Operates() {
		return c.synchronize(o, s)
	}
	f, err := o.ports[s.Kind].issue(s)
	if _, wrong := f.settle(); wrong != nil {
		return wrong
	}
	return err
}

// step carries out a legal step.
func (c *crew) step(s *Step, i int) error {
	o := &c.windows[s.Window]
	switch {
	case s.Call.Operates():
		f, err := o.ports[s.Kind].issue(s)
		c.flights = append(c.flights, airborne{flight: f, step: s, index: i})
		return err
	case s.Call == Store:
		o.ports[s.Kind].store(s)
		return o.bytes.Sync()
	case s.Call == Load:
		if err := o.bytes.Sync(); err != nil {
			return err
		}
		c.results[i] = o.ports[s.Kind].load(s)
		return nil
	case s.Call == RFlush:
		request, err := o.bytes.RFlush(s.Target)
		c.flushes = append(c.flushes, flushing{request, s, i})
		return err
	case s.Call == Wait || s.Call == Test:
		return c.request(s)
	case s.Call == WaitNotify:
		due := o.due[s.Slot]
		o.due[s.Slot] = 0
		return c.block(func(ctx context.Context) error { return o.bytes.WaitNotify(ctx, s.Slot, due) })
	}
	if err := c.synchronize(o, s); err != nil {
		return err
	}
	o.epochs.step(s)
	return c.settle(func(f *airborne) bool {
		all := s.Call == FlushAll || s.Call == FlushLocalAll || s.Call == UnlockAll
		return f.step.Window == s.Window && (all || f.step.Target == s.Target) && s.Call != Lock && s.Call != LockAll
	})
}

// synchronize makes a call that locks, unlocks or flushes, or waits for notifications.
func (c *crew) synchronize(o *opened, s *Step) error {
	switch s.Call {
	case Flush:
		return c.block(func(ctx context.Context) error { return o.bytes.Flush(ctx, s.Target) })
	case FlushLocal:
		return c.block(func(ctx context.Context) error { return o.bytes.FlushLocal(ctx, s.Target) })
	case FlushAll:
		return c.block(o.bytes.FlushAll)
	case FlushLocalAll:
		return c.block(o.bytes.FlushLocalAll)
	case RFlush:
		_, err := o.bytes.RFlush(s.Target)
		return err
	case Lock:
		return c.block(func(ctx context.Context) error { return o.bytes.Lock(ctx, s.LockKind, s.Target) })
	case Unlock:
		return c.block(func(ctx context.Context) error { return o.bytes.Unlock(ctx, s.Target) })
	case LockAll:
		return c.block(func(ctx context.Context) error { return o.bytes.LockAll(ctx) })
	case UnlockAll:
		return c.block(o.bytes.UnlockAll)
	case WaitNotify:
		return o.bytes.WaitNotify(c.ctx, s.Slot, 1)
	}
	return fmt.Errorf("oracle: %v is not carried out", s.Call)
}

// request waits for a request, or tests it.
func (c *crew) request(s *Step) error {
	for i := range c.flights {
		f := &c.flights[i]
		if f.step.Request != s.Request || !f.step.Call.requests() {
			continue
		}
		if done, err := c.over(f.request(), s); err != nil || !done {
			return err
		}
		return c.down(f)
	}
	for i := range c.flushes {
		f := &c.flushes[i]
		if f.step.Request != s.Request {
			continue
		}
		if done, err := c.over(f.request, s); err != nil || !done {
			return err
		}
		return c.settle(func(a *airborne) bool {
			return a.index < f.index && a.step.Window == f.step.Window && a.step.Target == f.step.Target
		})
	}
	return errors.New("the request was not made")
}

// over waits for a request, or tests it.
func (c *crew) over(r window.Request, s *Step) (done bool, err error) {
	if s.Call == Test {
		return r.Test()
	}
	return true, c.block(r.Wait)
}

// settle records what the completed flights have read.
func (c *crew) settle(complete func(f *airborne) bool) error {
	for i := range c.flights {
		if f := &c.flights[i]; complete(f) {
			if err := c.down(f); err != nil {
				return err
			}
		}
	}
	return nil
}

// down settles a flight.
func (c *crew) down(f *airborne) error {
	b, err := f.settle()
	if b != nil {
		c.results[f.index] = b
	}
	return err
}

// land settles all flights, and checks that the buffers of those settled earlier have not been written to.
func (c *crew) land() error {
	if err := c.settle(func(*airborne) bool { return true }); err != nil {
		return err
	}
	for i := range c.flights {
		if f := &c.flights[i]; !f.intact() {
			return fmt.Errorf("step %d: %v: %w, after it was complete", f.index, f.step, errOverrun)
		}
	}
	return nil
}
