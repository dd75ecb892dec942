// Package published publishes the statistics of Worlds and windows by package expvar. A program that serves HTTP then
// shows them at /debug/vars, where monitoring looks.
//
//	if err := published.World("rma", w); err != nil {
//		return err
//	}
//	if err := published.Window("rma.table", win); err != nil {
//		return err
//	}
//
// It is a package of its own because expvar brings an HTTP server along. expvar removes nothing: a World or a window
// keeps its name and its counts after it has been closed.
package published
