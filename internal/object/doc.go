// Package object holds the Go objects behind buffers weakly, for caches of registered memory: while an Object returns
// its memory, the card's pages behind these addresses are those that were registered.
//
// # Why this is correct
//
// Go's heap does not move objects, and does not reuse the pages of a live object. A weak pointer to a dead object
// returns nil before its memory is reused: the sweeper clears it first. So a weak pointer shows what an address cannot.
// A pointer from Alive is to the object that was there when Of was called. A nil means that the object is gone,
// whatever is at its address now. The object of a pointer from Alive stays alive as long as the program holds the
// pointer.
//
// Memory outside Go's heap has no such pointers: variables of packages, mapped memory, memory of C, stacks. Of reports
// that.
//
// # Costs
//
// Alive and Stop may park their goroutine while a collection ends its marking, so they should not be called under a lock that
// another goroutine spins for. Of and Stop walk all Objects at lower addresses within the same Go object, about 10 ns each. Thousands of
// buffers within one large array should share an Object.
package object

import _ "github.com/onesided/rma/internal/platform"
