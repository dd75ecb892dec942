package oracle

import (
	"context"
	"errors"
	"fmt"

	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/epoch"
	"github.com/onesided/rma/internal/hint"
	"github.com/onesided/rma/scheduler"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// Options say how to run a program. They do not change which outcomes are allowed.
type Options struct {
	// Without excludes schemes, as hint.Without does.
	Without scheduler.Scheme
	// Concurrent makes the members of a rank goroutines. Otherwise they take turns: each carries out all of its steps
	// of a phase, as on a device whose ranks are single coroutines.
	Concurrent bool

	// mangle may change a step before it is carried out, or drop it, in order to test that this is detected.
	mangle func(s *Step) (changed *Step, drop bool)
}

// Run carries out this rank's share of a program, which must have passed Check. All ranks of a job of p.Ranks must
// call it. Rank 0 compares the results of all ranks with what the model allows. There the first difference is an
// *OutcomeError. ErrUndecided means that none was found, but not everything could be explained in bounded time. An
// unexpected error of a call, or a missing one, is an error on the rank that made the call.
func Run(ctx context.Context, w *world.World, p *Program, o Options) error {
	if w.Size() != p.Ranks {
		return fmt.Errorf("oracle: %w: a program of %d ranks in a job of %d", ErrIllegal, p.Ranks, w.Size())
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	r := &runner{ctx: ctx, ended: ended, world: w, program: p, options: o, rank: w.Rank()}
	if err := r.run(); err != nil {
		return err
	}
	all, err := gather(ctx, w, r.log)
	if err != nil || r.rank != 0 {
		return err
	}
	record, err := p.decode(all)
	if err != nil {
		return err
	}
	return p.judge(record)
}

// A runner carries out the share of a rank.
type runner struct {
	ctx, ended context.Context
	world      *world.World
	program    *Program
	options    Options
	rank       int
	windows    []opened
	// phase is the current phase, number its number.
	phase  *Phase
	number int
	// results are what steps of the phase have read, by step.
	results [][]byte
	// log is the record of this rank: see gather.
	log []byte
}

// An opened is a window that the program has made.
type opened struct {
	bytes bytewise
	ports [reduce.Kinds]port
	// seen is the rank's own part at the last examination.
	seen []byte
	// due has the notifications of each slot that were sent and not waited for.
	due    []uint64
	epochs epochs
}

// view makes the ports that steps of a rank need, before its members share them.
func (r *runner) view() error {
	for i := range r.phase.Steps {
		s := &r.phase.Steps[i]
		if s.Rank != r.rank || !s.Call.Operates() && s.Call != Store && s.Call != Load {
			continue
		}
		o := &r.windows[s.Window]
		if o.ports[s.Kind] != nil {
			continue
		}
		var err error
		if o.ports[s.Kind], err = makers[s.Kind].port(o.bytes); err != nil {
			return err
		}
	}
	return nil
}

func (r *runner) run() error {
	if err := r.open(); err != nil {
		return err
	}
	for i := range r.program.Phases {
		r.number, r.phase = i, &r.program.Phases[i]
		if err := r.runPhase(); err != nil {
			return fmt.Errorf("oracle: phase %d: rank %d: %w", i, r.rank, err)
		}
	}
	for i := range r.windows {
		if err := r.close(&r.windows[i]); err != nil {
			return fmt.Errorf("oracle: rank %d closes window %d: %w", r.rank, i, err)
		}
	}
	return nil
}

// open makes the windows.
func (r *runner) open() error {
	r.windows = make([]opened, len(r.program.Windows))
	for i := range r.windows {
		w, o := &r.program.Windows[i], &r.windows[i]
		options := []window.Option{window.Notifications(w.Slots), hint.Without(r.options.Without)}
		for _, promise := range []struct {
			given bool
			by    func() window.Option
		}{
			{w.SingleElement, window.SingleElement}, {w.SameOp, window.SameOp},
			{w.Unordered, window.Unordered}, {w.Immediate, window.Immediate},
			{w.CardAtomics, window.CardAtomics},
		} {
			if promise.given {
				options = append(options, promise.by())
			}
		}
		build := makers[w.Kind].allocate
		if w.Create {
			build = makers[w.Kind].create
		}
		var err error
		if o.bytes, err = build(r.ctx, r.world, w.Counts[r.rank], options); err != nil {
			return fmt.Errorf("oracle: rank %d makes window %d: %w", r.rank, i, err)
		}
		o.seen, o.due = make([]byte, len(o.bytes.Local())), make([]uint64, w.Slots)
		o.epochs.locks = make([]window.LockKind, r.program.Ranks)
	}
	return nil
}

// close closes a window and checks that it then rejects every call.
func (r *runner) close(o *opened) error {
	if o.epochs.fenced {
		if err := o.bytes.Fence(r.ctx, window.NoPrecede, window.NoSucceed); err != nil {
			return err
		}
	}
	if err := o.bytes.Close(); err != nil {
		return err
	}
	for _, refused := range []error{
		o.bytes.Put(nil, 0, 0), o.bytes.Fence(r.ctx), o.bytes.Lock(r.ctx, window.Shared, 0), o.bytes.Close(),
	} {
		if !errors.Is(refused, epoch.ErrClosed) {
			return fmt.Errorf("a call after Close is %w, want %w", refused, epoch.ErrClosed)
		}
	}
	return nil
}

// block makes a call that may block. In a hasty phase it first makes it with an ended context.
func (r *runner) block(call func(ctx context.Context) error) error {
	if r.phase.Hasty {
		err := call(r.ended)
		// The ranks reject nothing of a program, and a rejection would be returned once.
		var rejected *world.RejectionError
		if err == nil || !errors.Is(err, context.Canceled) || errors.As(err, &rejected) {
			return err
		}
	}
	return call(r.ctx)
}

func (r *runner) runPhase() error {
	r.results = make([][]byte, len(r.phase.Steps))
	for i := range r.phase.Steps {
		if s := &r.phase.Steps[i]; s.Call == PutNotify && !s.Refused && s.Target == r.rank {
			r.windows[s.Window].due[s.Slot]++
		}
	}
	for i := range r.windows {
		if err := r.begin(i); err != nil {
			return fmt.Errorf("window %d: %w", i, err)
		}
	}
	if err := r.view(); err != nil {
		return err
	}
	members, err := r.members()
	if err != nil {
		return err
	}
	for i := len(r.windows) - 1; i >= 0; i-- {
		if err := r.end(i); err != nil {
			return fmt.Errorf("window %d: %w", i, err)
		}
	}
	for _, c := range members {
		if err := c.land(); err != nil {
			return err
		}
	}
	for i := range r.phase.Steps {
		if s := &r.phase.Steps[i]; s.Rank == r.rank && s.reads() {
			r.log = append(r.log, r.results[i]...)
		}
	}
	if r.phase.Loose {
		return nil
	}
	if err := r.world.Barrier(r.ctx); err != nil {
		return err
	}
	for i := range r.windows {
		if err := r.look(&r.windows[i]); err != nil {
			return fmt.Errorf("window %d: %w", i, err)
		}
	}
	return r.world.Barrier(r.ctx)
}

// look records what has changed in the rank's own part, and takes the notifications.
func (r *runner) look(o *opened) error {
	if err := o.bytes.Sync(); err != nil {
		return err
	}
	now := o.bytes.Local()
	r.log = appendChanges(r.log, o.seen, now)
	copy(o.seen, now)
	for slot, due := range o.due {
		took, err := o.bytes.TestNotify(slot, due)
		if err != nil {
			return err
		}
		more, err := o.bytes.TestNotify(slot, 1)
		if err != nil {
			return err
		}
		if !took || more {
			return fmt.Errorf("slot %d: got fewer (%v) or more (%v) notifications, allowed are %d", slot, !took, more, due)
		}
		o.due[slot] = 0
	}
	return nil
}
