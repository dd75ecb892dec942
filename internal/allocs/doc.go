// Package allocs measures in a test how many bytes a call allocates:
//
//	allocs.AtMost(t, 4<<10+8*len(message), func() { _ = decode(message) })
//
// The runtime counts the allocations of all goroutines of the process. AtMost leaves out allocations by others that
// happen now and then: it repeats the call and takes the least number. If a call cannot be repeated, Of counts the
// allocations of all, and the test must allow for those of others.
package allocs
