// Package published has package expvar tell what Worlds and windows have done: a program that serves HTTP shows it at
// /debug/vars, where monitoring looks.
//
//	if err := published.World("rma", w); err != nil {
//		return err
//	}
//	if err := published.Window("rma.table", win); err != nil {
//		return err
//	}
//
// It is a package of its own because expvar brings an HTTP server along. What is published stays: expvar forgets
// nothing, so a World or a window keeps its counts, and its name, after it has been closed.
package published
