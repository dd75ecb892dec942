// Package shortage makes this process run out of a resource of the system during a part of a test:
//
//	end := shortage.Begin(t, 0)
//	...
//	err := connect() // syscall.EMFILE
//	...
//	end()
//
// Bodies of ranks, which have no *testing.T, use Descriptors. Only one shortage may be in effect at a time, and no
// other test may run in the process meanwhile.
package shortage
