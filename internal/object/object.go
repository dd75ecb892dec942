package object

import (
	"runtime"
	"weak"
)

// An Object is the Go object behind a buffer, held weakly. The zero value is one that is gone.
type Object struct {
	memory  weak.Pointer[byte]
	cleanup runtime.Cleanup
}

// Of gives the object that memory is part of, and has gone called with ticket once it is no more,
// in a goroutine of the runtime's that others wait for: it must do no more than queue the ticket. ok
// is false for memory that is not on Go's heap, or none.
//
// Neither gone nor ticket may lead to the object. It would live for ever; where ticket is a pointer
// into it, Of panics.
//
// What is less than 16 bytes long may share its memory with others, and lives as long as they do.
func Of[T any](memory []byte, gone func(T), ticket T) (o Object, ok bool) {
	if len(memory) == 0 {
		return o, false
	}
	first := &memory[0]
	// The clean-up comes first: it can be tried on any memory, but weak.Make ends the process where
	// there is no object.
	if o.cleanup, ok = onceGone(first, gone, ticket); ok {
		o.memory = weak.Make(first)
	}
	return o, ok
}

// What runtime.AddCleanup panics with where there is no object that could be collected.
const (
	notAllocated = "runtime.AddCleanup: ptr not in allocated block"
	inArena      = "runtime.AddCleanup: ptr is arena-allocated"
)

// onceGone adds a clean-up to what is at an address, if the collector ever takes that: variables of
// packages get one that does nothing.
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

// Alive gives the address that Of was given, by a pointer that keeps the object alive, or nil if that is
// gone. It may park the goroutine.
func (o *Object) Alive() *byte { return o.memory.Value() }

// Stop has gone called no more, unless the object is gone already. Alive is as it was.
func (o *Object) Stop() {
	alive := o.Alive()
	o.cleanup.Stop()
	runtime.KeepAlive(alive)
}
