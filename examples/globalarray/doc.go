// Package globalarray is an array whose elements are spread over the ranks of a job and addressed by one index.
//
//	a, err := globalarray.New[float64](ctx, w, 1<<20, globalarray.Blocks())
//	...
//	err = a.Scatter(ctx, values, indices)  // values[i] becomes element indices[i]
//	err = a.Sync(ctx)                      // all ranks' operations are complete and visible
//	err = a.Gather(ctx, results, indices)
//	for i, element := range a.Local() {    // the elements of this rank, by their indices
//		*element *= float64(i)
//	}
//	err = a.Sync(ctx)
//	err = a.Close()
//
// New, Sync and Close are collective. A rank may make every other call at any time.
//
// # Distribution
//
// A [Map] computes which rank has an element, and where. Blocks gives each rank one contiguous block, of as equal
// length as possible. Cyclic gives the ranks blocks of a given length in turns. A Map needs no communication.
//
// # Order
//
// The array's window is in one LockAll epoch from New to Close (package window). An operation that has returned is
// complete, and every rank sees its values.
//
// Accumulate and FetchAndOp are atomic with respect to each other, element by element. Get, Put, Gather and Scatter
// are not atomic with respect to any operation: separate them from other operations on the same elements by a Sync.
// Stores of a rank into its own elements are visible to other ranks after the next Sync, and the reverse.
//
// An operation issues all its elements and then flushes each rank that has some of them once. Accumulate first sorts
// its values by rank, 4096 elements at a time, and accumulates those of a rank by one call. Only Accumulate allocates
// memory, when a rank has more elements than ever before: in the worst case 4096 elements and displacements for each
// rank.
//
// An index out of range is a *RangeError, and a nil context an ErrArgument, before anything has been issued.
package globalarray
