// Package logqueue decouples logging calls from a logger that may block, such as on a full disk or an unread pipe.
//
//	queue := logqueue.New(logger)
//	queue.Logger().Warn("connection refused", "peer", peer)
//	…
//	queue.Close()
//
// Invariants:
//
//   - Logging never waits, and calls no method of the logger that may block.
//   - Records reach the logger in the order in which they were logged, with their original time and source position.
//   - At most [Most] records wait. Further records are counted, and the number is logged as soon as possible.
//   - There is a goroutine only while records wait. Close waits for it: for at most half a second if the logger blocks,
//     for two seconds if it is slow. A logger that blocks longer keeps that one goroutine until it returns.
//   - Failures of the logger are ignored, as in package slog.
package logqueue

import _ "github.com/onesided/rma/internal/platform"
