// Package shortage makes this process run out of a resource of the system during a part of a test:
//
//	end, err := shortage.Descriptors(0)
//	...
//	err = connect() // syscall.EMFILE
//	...
//	err = end()
//
// Bodies of ranks, which have no *testing.T, may use it, too. Only one shortage may be in effect at a time, and no
// other test may run in the process meanwhile.
package shortage
