package object

import (
	"runtime"
	"weak"
)

// An Object is the Go object behind a buffer, held weakly. The zero value is an object that is gone.
type Object struct {
	memory  weak.Pointer[byte]
	cleanup runtime.Cleanup
}

// Of returns the object that memory is part of. When the object is gone, Of's gone is called with ticket, in a
// goroutine of the runtime that others wait for: gone must only queue the ticket. ok is false for memory that is empty
// or not on Go's heap.
//
// Neither gone nor ticket may reference the object, which would then live for ever. Of panics if ticket is a pointer
// into the object.
//
// Memory of less than 16 bytes may share its block with other objects, and lives as long as they do.
func Of[T any](memory []byte, gone func(T), ticket T) (o Object, ok bool) {
	if len(memory) == 0 {
		return o, false
	}
	first := &memory[0]
	// The clean-up comes first: it can be tried on any memory, but weak.Make ends the process if there is no object.
	if o.cleanup, ok = onceGone(first, gone, ticket); ok {
		o.memory = weak.Make(first)
	}
	return o, ok
}

// The panics of runtime.AddCleanup for memory that is not a collectable object.
const (
	notAllocated = "runtime.AddCleanup: ptr not in allocated block"
	inArena      = "runtime.AddCleanup: ptr is arena-allocated"
)

// onceGone adds a clean-up to the object at an address, if it can be collected. For variables of packages the clean-up
// does nothing.
func onceGone[T any](first *byte, gone func(T), ticket T) (c runtime.Cleanup, ok bool) {
	defer func() {
		switch reason := recover(); reason {
		case nil, notAllocated, inArena:
		default:
			panic(reason)
		}
	}()
	c = runtime.AddCleanup(first, gone, ticket)
	return c, c != runtime.Cleanup{}
}

// Alive returns the address that Of was given, as a pointer that keeps the object alive, or nil if the object is gone.
// It may park the goroutine.
func (o *Object) Alive() *byte { return o.memory.Value() }

// Stop prevents the call of gone, unless the object is gone already. Alive does not change. Stop may park the goroutine.
func (o *Object) Stop() {
	// The runtime finds its record of the clean-up by the object's address, which may be another object's if this one is gone. So
	// the clean-up is stopped only while the object is held. If it is gone, the clean-up has been queued.
	if alive := o.Alive(); alive != nil {
		o.cleanup.Stop()
		runtime.KeepAlive(alive)
	}
}
