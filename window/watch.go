package window

import (
	"github.com/onesided/rma/aggregate"
	"github.com/onesided/rma/epoch"
	"github.com/onesided/rma/internal/job"
)

// A watch observes each operation on a window. If nothing is observed there is none, and operations on mapped memory
// take the fast path. Otherwise they all take the slow path, which reports them. So operations that are not observed
// pay nothing.
type watch struct {
	watchCounts
	counts bool
	hook   func(*job.Event)
	// debug is nil where misuse is not looked for.
	debug *debugging
}

// newWatch returns the watch that the options of a World need, or nil if they need none.
func newWatch(w *job.World) *watch {
	one := &watch{counts: w.Counts(), hook: w.Hook()}
	if w.Debugs() {
		one.debug = &debugging{beyond: make(map[int]*accesses), openers: make(map[epoch.Opening]caller)}
	}
	if !one.counts && one.hook == nil && one.debug == nil {
		return nil
	}
	return one
}

// watched issues an operation by do, and reports it unless do returns an error.
func (v *view) watched(i *issue, do func() error) error {
	w := v.watch
	if w.hook != nil {
		i.begun = v.now()
	}
	var a *access
	if w.debug != nil {
		var err error
		if a, err = v.begin(i); err != nil {
			return err
		}
	}
	if err := do(); err != nil || i.count == 0 {
		if a != nil {
			v.withdrawAccess(a)
		}
		return err
	}
	bytes := i.count << v.shift
	_, mapped := v.mapped(i.target, i.displacement)
	mapped = mapped && (v.cards != cardsAlone || i.kind == aggregate.Put || i.kind == aggregate.Get)
	if a != nil {
		v.accepted(a)
	}
	if a != nil && mapped {
		w.debug.hide(a)
	}
	if w.counts && mapped {
		w.operations[i.kind].Add(1)
		w.bytes.Add(uint64(bytes))
	}
	if w.hook != nil {
		w.hook(&job.Event{
			Call: i.call, Rank: v.world.InJob(v.world.Rank()), Begun: i.begun, Ended: v.now(), Operation: true, Window: v.number,
			Target: i.target, Displacement: i.displacement, Count: i.count, Bytes: bytes, Op: i.op, Mapped: mapped,
		})
	}
	return nil
}
