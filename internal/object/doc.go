// Package object holds the Go objects behind buffers weakly, which keeps a cache of registered memory
// honest: as long as an Object gives its memory, the card's pages behind these addresses are those
// that were registered.
//
// # Why that is so
//
// Go's heap does not move objects, and gives the pages of a live one to nobody else. A weak pointer
// to an object that is dead gives nil before its memory can be another's: the sweeper clears it
// first. So what an address alone does not tell, a weak pointer does: a pointer from Alive is
// to the object that was there when Of was called, and nil says that it is no more, whatever is at its
// address by then. What a pointer from Alive leads to stays until the program has let go of that
// pointer.
//
// Memory that is not of Go's heap has no such pointers: a package's variables, what is mapped, what C
// allocates, stacks. Of tells.
//
// # What it takes
//
// Alive may park its goroutine while a collection ends, so it may not be called under a lock that
// another goroutine spins for. Of and Stop pass all Objects of lower addresses within the same Go
// object, some 10 ns each: thousands of buffers that are parts of one large array want a common Object.
package object

import _ "github.com/onesided/rma/internal/platform"
