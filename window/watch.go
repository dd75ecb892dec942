package window

import (
	"time"
	"unsafe"

	"github.com/onesided/rma/aggregate"
	"github.com/onesided/rma/world"
)

// A watch is told of each operation on a window. There is none where nobody asked for it, and operations on mapped
// memory go the short way then; else they all go the long way, which tells of them. So those pay nothing that are not
// watched.
type watch struct {
	watchCounts
	counts bool
	hook   func(*world.Event)
}

// newWatch is what a World has windows tell, nil if that is nothing.
func newWatch(w *world.World) *watch {
	one := &watch{counts: w.Counts(), hook: w.Hook()}
	if !one.counts && one.hook == nil {
		return nil
	}
	return one
}

// An issue is an operation on count elements of a target, from origin, or into result, or both.
type issue struct {
	call                        string
	kind                        aggregate.Kind
	op                          Op
	begun                       time.Duration
	origin, result              unsafe.Pointer
	count, target, displacement int
}

// watched tells of an operation that was issued, unless that was an error, which it returns.
func (v *view) watched(err error, i *issue) error {
	if err != nil || i.count == 0 {
		return err
	}
	w, bytes := v.watch, i.count<<v.shift
	_, mapped := v.mapped(i.target, i.displacement)
	mapped = mapped && (v.cards != cardsAlone || i.kind == aggregate.Put || i.kind == aggregate.Get)
	if w.counts && mapped {
		w.operations[i.kind].Add(1)
		w.bytes.Add(uint64(bytes))
	}
	if w.hook != nil {
		w.hook(&world.Event{
			Call: i.call, Begun: i.begun, Ended: v.now(), Operation: true, Window: v.number,
			Target: i.target, Displacement: i.displacement, Count: i.count, Bytes: bytes, Op: i.op, Mapped: mapped,
		})
	}
	return nil
}
