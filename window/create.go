package window

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/scheduler"
	"github.com/onesided/rma/world"
)

// Each rank makes a window in one call. Every rank makes its part, and then all ranks exchange descriptions of their
// parts. So an error on one rank is known on all before any of them returns.
//
// A call that its context ends early may have sent its description already. The other ranks may then have the window
// and use it, before the call is made again. So the state of the call stays with the World, as a creation, and the same
// call continues it. It is discarded only when all ranks know that there will be no window. If they cannot agree on
// that, because a rank has failed, it stays until the World is closed.

// arguments are the arguments that must be the same when a call is made again.
type arguments struct {
	call string
	kind reduce.Kind
	settings
	count int
	// memory is the start of the memory given to Create, if count is not 0.
	memory *byte
}

// A creation is a window that is being made.
type creation struct {
	arguments
	world *job.World
	part  part
	core  *core
	// fault is the error for which this rank has no part.
	fault error
	// prepared is set once there is a part or a fault. mine describes it.
	prepared bool
	mine     description
	// told is set once other ranks may have received mine.
	told bool
	// all has the descriptions of all parts, once they are known. found is this rank's finding about how ranks reach each
	// other, and findings has those of all ranks.
	all      []description
	found    *finding
	findings []finding
	// site is where the program made the call, if the rank looks for misuse.
	site site
}

// A creator makes the windows of a World, one after the other.
type creator struct {
	mu sync.Mutex
	// number is the number of the next window, if numbered is set.
	number   uint32
	numbered bool
	// unfinished is the creation that a context has ended early. over is the error after which no window can be made.
	unfinished *creation
	over       error
}

type creatorKey struct{}

// create makes a window, or continues an unfinished creation.
func create[T Element](ctx context.Context, w *world.World, a arguments, options []Option, makePart func() (part, error)) (*Window[T], error) {
	if err := checkContext(ctx, a.call); err != nil {
		return nil, err
	}
	if w == nil {
		return nil, fmt.Errorf("window: %s: %w: nil World", a.call, ErrArgument)
	}
	j := jobOf(w)
	if err := j.Collective(); err != nil {
		return nil, errtext.Errorf("window: %s: %w", a.call, err)
	}
	all := j.Attached(creatorKey{}, func() any { return new(creator) }).(*creator)
	if !all.mu.TryLock() {
		return nil, fmt.Errorf("window: %s: %w in another goroutine of rank %d", a.call, world.ErrBusy, w.Rank())
	}
	defer all.mu.Unlock()
	begun, number := j.BeginSpan(), uint32(0)
	defer func() { j.EndSpanOf(number, a.call, begun) }()
	a.kind, a.Slots, a.Scheme = reduce.KindOf[T](), defaultNotifications, scheduler.All&^j.Tuning().NoSchemes
	var fault error
	for _, option := range options {
		if option != nil {
			fault = errors.Join(fault, option(&a.settings))
		}
	}
	c, err := all.begin(j, a, fault, makePart)
	if err != nil {
		return nil, err
	}
	if err = all.prepare(ctx, c); err == nil {
		err = c.agree(ctx)
	}
	if err := all.finish(c, err); err != nil {
		return nil, err
	}
	c.core.face, number = w, c.core.number
	return windowOver[T](c.core), nil
}

// begin returns the creation that the call continues, or begins one.
func (all *creator) begin(w *job.World, a arguments, fault error, makePart func() (part, error)) (*creation, error) {
	if all.over != nil {
		return nil, errtext.Errorf("window: %s: none can be made any more: %w", a.call, all.over)
	}
	switch c := all.unfinished; {
	case c == nil:
	case c.arguments == a:
		return c, nil
	case c.told:
		return nil, fmt.Errorf("window: %s: %w: %s was cut short, call it again with the same arguments first", a.call, world.ErrUnfinished, c.call)
	default:
		all.unfinished = nil
		if err := c.discard(); err != nil {
			return nil, errtext.Errorf("window: %s: giving back what %s has made: %w", a.call, c.call, err)
		}
	}
	if !all.numbered {
		// The number is taken even if this rank has a fault: the other ranks take it, too.
		all.number, all.numbered = w.NewNumber(), true
	}
	c := &creation{arguments: a, world: w, fault: fault}
	if w.Debugs() {
		c.site = here()
	}
	if c.fault == nil {
		c.part, c.fault = makePart()
	}
	return c, nil
}

// prepare makes this rank's part ready for other ranks. If the context ends first, the next call continues.
func (all *creator) prepare(ctx context.Context, c *creation) error {
	if c.prepared {
		return nil
	}
	defer c.world.Working()()
	if c.fault == nil && !c.Sparse {
		err := c.part.back(ctx)
		if over := ctx.Err(); over != nil && errors.Is(err, over) {
			return fmt.Errorf("window: %s: %w", c.call, err)
		}
		c.fault = err
	}
	c.prepared = true
	c.mine = description{call: callNumber(c.call), kind: uint32(c.kind), hints: promisesOf(&c.settings), slots: uint32(c.Slots), seats: uint32(c.Seats), debugs: c.world.Debugs()}
	if c.fault == nil {
		c.fault = c.part.addControl(c.world, c.settings)
	}
	if c.fault == nil {
		c.mine.describe(&c.part)
		c.mine.tallies, c.mine.ability = talliesSuit(c.world), abilityOf(c.world, &c.part)
		// The core serves messages from now on: other ranks may have the window before this rank learns that all agree.
		c.core, c.fault = newCore(c.world, all.number, c.settings, &c.part, c.call == "Allocate")
	}
	c.mine.failed = c.fault != nil
	return nil
}

// finish keeps a creation that can be continued, and ends any other.
func (all *creator) finish(c *creation, err error) error {
	var disagreed *unlikeError
	switch {
	case err == nil:
	case errors.As(err, &disagreed):
		err = errors.Join(disagreed.error, c.discard())
	case job.Failed(err) != nil, job.Is(err, world.ErrMismatch), job.Is(err, world.ErrClosed):
		all.over = err
	default:
		all.unfinished = c
		return err
	}
	all.unfinished, all.numbered = nil, false
	return err
}

// discard frees what the creation has made.
func (c *creation) discard() error {
	if c.core != nil {
		c.core.withdraw()
	}
	return c.part.release()
}

// An unlikeError is an error that every rank gets: there will be no window.
type unlikeError struct{ error }

func (e *unlikeError) Unwrap() error { return e.error }

// agree exchanges the parts with the other ranks, and how ranks reach each other.
func (c *creation) agree(ctx context.Context) error {
	if c.all == nil {
		all := make([]description, c.world.Size())
		if err := gather(ctx, c, c.mine, all); err != nil {
			return errors.Join(c.fault, err)
		}
		c.all = all
	}
	if err := c.differences(); err != nil {
		if ended := c.addPlaces(ctx, err); ended != nil {
			return ended
		}
		return &unlikeError{err}
	}
	failed := slices.IndexFunc(c.all, func(d description) bool { return d.failed })
	if err := c.firstFailure(ctx, failed); err != nil {
		return err
	}
	how := reachMapped
	if c.call == "Create" {
		var err error
		if how, err = c.agreeOnReach(ctx); err != nil {
			return err
		}
	}
	c.core.open(c.all, how, c.call == "Allocate")
	// The release of the window keeps c alive, because it is a method of c.part. It needs no descriptions.
	c.all, c.findings = nil, nil
	return nil
}

// gather exchanges a value with all ranks.
func gather[T any](ctx context.Context, c *creation, mine T, all []T) error {
	err := job.GatherForWindow(ctx, c.world, "window."+c.call, []T{mine}, all)
	c.told = c.told || !job.Is(err, world.ErrBusy) && !job.Is(err, world.ErrUnfinished)
	return err
}

// differences returns the error of the first rank that differs from rank 0. If none does, it returns that of the first
// rank that has described an impossible part.
func (c *creation) differences() error {
	for rank := range c.all {
		d := &c.all[rank]
		differ := func(what string, value, want any) error {
			return &MismatchError{Call: c.call, What: what, Rank: rank, Value: value, Want: want}
		}
		switch want := &c.all[0]; {
		case d.call != want.call:
			return differ("", callName(d.call), callName(want.call))
		case d.kind != want.kind:
			return differ("element type", reduce.Kind(d.kind), reduce.Kind(want.kind))
		case !d.failed && !want.failed && d.hints != want.hints:
			return differ("options", d.hints, want.hints)
		case !d.failed && !want.failed && d.slots != want.slots:
			return differ("Notifications", d.slots, want.slots)
		case !d.failed && !want.failed && d.seats != want.seats:
			return differ("Seats", d.seats, want.seats)
		}
	}
	// All kinds are equal now, so they are that of this rank.
	for rank := range c.all {
		if d := &c.all[rank]; !d.failed {
			if err := d.check(c.kind); err != nil {
				return &CreateError{Rank: rank, Cause: err}
			}
		}
	}
	return nil
}

// addPlaces adds the places of the calls to the error of calls that differ, if all ranks look for misuse. It returns an
// error only if ctx has ended: the next call continues it.
func (c *creation) addPlaces(ctx context.Context, differ error) error {
	var mismatch *MismatchError
	if !errors.As(differ, &mismatch) || slices.ContainsFunc(c.all, func(d description) bool { return !d.debugs }) {
		return nil
	}
	all := make([]sourcePlace, len(c.all))
	if err := gather(ctx, c, sourcePlaceOf(&c.site), all); err != nil {
		if ctx.Err() != nil {
			return err
		}
		// A rank has failed. All others know without it that the calls differ.
		return nil
	}
	mismatch.Place, mismatch.WantPlace = text(all[mismatch.Rank][:]), text(all[mismatch.WantRank][:])
	return nil
}

// firstFailure returns the error of the rank failed, the first one that has a fault, or nil if failed is -1. All ranks
// exchange their faults.
func (c *creation) firstFailure(ctx context.Context, failed int) error {
	if failed < 0 {
		return nil
	}
	all := make([]failure, c.world.Size())
	if err := gather(ctx, c, failureOf(c.fault), all); err != nil {
		return err
	}
	if c.fault != nil {
		return &unlikeError{&CreateError{Rank: c.world.Rank(), Cause: c.fault}}
	}
	f := &all[failed]
	return &unlikeError{&CreateError{Rank: failed, Cause: &toldError{text(f.text[:]), f.unsupported}}}
}
