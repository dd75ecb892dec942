// Package allocs measures in a test how many bytes a call allocates:
//
//	allocs.AtMost(t, 4<<10+8*len(message), func() { _ = decode(message) })
//
// The runtime counts what all goroutines of the process allocate. AtMost leaves out what others allocated now and then:
// it repeats the call and takes the least. Where a call cannot be repeated, Of counts the others too, and what the test
// allows has to leave room for them.
package allocs
