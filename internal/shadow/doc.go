// Package shadow keeps a plain copy of window memory for tests. The same operations are applied to the window and to
// the copy, and the two are compared.
//
//	both := shadow.Of(win)
//	for _, o := range program {
//		err = both.Put(o.origin, o.values, o.target, o.displacement)
//	}
//	err = win.Fence(ctx)
//	err = both.Check()
//
// Every rank runs the whole program, which must be the same on all ranks, for example drawn from a seed. A Pair
// applies the operations of all ranks to the copy, and those of its own rank to the window. Check compares the rank's
// memory, and the results of its Gets, and reports the first difference with its rank and displacement.
//
// A Memory is the copy alone, for tests that issue the operations themselves.
//
// # Preconditions
//
// The copy applies the operations in the order of the program. Between two synchronizations the window may apply
// operations of different ranks in any order. So these must not touch the same elements unless the order does not
// matter: Gets with Gets, and Accumulates of integers with one operation other than Replace.
//
// The copy is deliberately plain: one element at a time, through reflection.
package shadow
