// Package shortage has this process run out of what the system gives it, for a part of a test:
//
//	end, err := shortage.Descriptors(0)
//	...
//	err = connect() // syscall.EMFILE
//	...
//	err = end()
//
// It is for bodies of ranks, too, which have no *testing.T. Only one shortage is on at a time, and no other test runs
// beside it in the process.
package shortage
