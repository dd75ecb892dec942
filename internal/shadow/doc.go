// Package shadow keeps a plain copy of window memory for tests: the same operations are applied to the window and to the
// copy, and the two are compared.
//
//	both := shadow.Of(win)
//	for _, o := range program {
//		err = both.Put(o.origin, o.values, o.target, o.displacement)
//	}
//	err = win.Fence(ctx)
//	err = both.Check()
//
// Every rank goes through the whole program, which is the same in all of them, such as one that is drawn from a seed: a
// Pair applies the operations of all ranks to the copy, and its own rank's to the window. Check compares what the rank's
// memory holds, and what its Gets have read, and names the first difference by its rank and displacement.
//
// A Memory is the copy alone, for tests that issue the operations themselves.
//
// # Preconditions
//
// The copy takes the operations in the order of the program. The window may take those of different ranks in any order
// between two synchronizations, so there they must not touch the same elements unless the order does not matter: Gets
// with Gets, and Accumulates of one operation of integers, but Replace.
//
// The copy is deliberately plain: an element at a time, through reflection.
package shadow
