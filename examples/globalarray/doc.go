// Package globalarray is an array whose elements are spread over the ranks of a job, and addressed by
// one index: what programs on windows would else write again and again.
//
//	a, err := globalarray.New[float64](ctx, w, 1<<20, globalarray.Blocks())
//	...
//	err = a.Scatter(ctx, values, indices)  // values[i] becomes element indices[i]
//	err = a.Sync(ctx)                      // all ranks' operations are complete, for all to see
//	err = a.Gather(ctx, results, indices)
//	for i, element := range a.Local() {    // the elements of this rank, by their indices
//		*element *= float64(i)
//	}
//	err = a.Sync(ctx)
//	err = a.Close()
//
// New, Sync and Close are collective. Everything else a rank calls when it likes, without the others.
//
// # Where elements are
//
// A [Map] tells which rank has an element, and where. Blocks deals the indices to the ranks in one piece
// each, as even as can be; Cyclic deals pieces of a length in turns. It is arithmetic: nothing is asked of
// anybody.
//
// # Order
//
// The array's window is in one epoch of LockAll from New to Close (package window). An operation that has
// returned is complete: the values are in the array, for everybody to see. Of several on the same
// elements, by one rank or by different ones and without a Sync between, those of Accumulate and
// FetchAndOp are atomic with respect to each other, element by element. Get, Put, Gather and Scatter are not atomic with
// respect to any operation. What a rank stores into its elements by Local others may read after the next Sync, and the
// other way round.
//
// The elements of one operation go to their ranks together: all are issued, then each rank that has some of
// them is flushed once. Accumulate deals what it was given to the ranks first, 4096 elements at a time, and accumulates what a
// rank has by one call. Nothing is allocated, but for that, where a rank has more than ever before: in the worst case
// 4096 elements and places for each rank.
//
// An index out of range is a *RangeError before anything has been issued.
package globalarray
