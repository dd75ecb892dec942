// Package regcache decides which origin buffers a card is told of, and keeps what it was told.
//
// A card that needs registered memory reads and writes a buffer of the program either by way
// of memory that is registered already, which takes a copy each time, or where it is, which takes a
// registration: many times a small copy, but only once for a buffer that is used again. So uses are
// counted (Usage), and a buffer is registered when it has been used as often as pays, or a part of
// that (Extra, Speculation). This follows "Efficient RDMA transfer of frequently-used buffers"
// (paper B). Which part is best depends on the program, so it is learned (Adaptive): for each class of
// sizes it is what would have been best for the buffers that were seen.
//
// What was registered is kept (Cache) until there is too much of it, or its memory is another's, which package
// object tells of Go's. Then a buffer's uses are counted anew. Where more is in use than can be kept, what
// learns keeps what it has, instead of registering each buffer shortly before it would have to go again.
//
// Package world asks it of what the links to other ranks are to write from and read into.
//
// The package is pure: it calls no card, looks at no clock, and has no goroutine.
package regcache
