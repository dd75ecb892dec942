// Package logqueue keeps a logger that blocks, on a full disk or a pipe that nobody
// reads, from holding up those who log.
//
//	queue := logqueue.New(logger)
//	queue.Logger().Warn("connection refused", "peer", peer)
//	…
//	queue.Close()
//
// What holds:
//
//   - To log never waits, and calls nothing of the logger's that may.
//   - Records reach the logger in the order in which they were logged, with the time
//     and the place of that.
//   - At most [Most] records wait. Those beyond it are counted, and the logger is told
//     how many they were as soon as it can be.
//   - There is a goroutine only while records wait. Close gives them a quarter of a
//     second. A logger that blocks longer keeps that one goroutine, until it returns.
//   - That a logger fails is its own matter, as with package slog.
package logqueue

import _ "github.com/onesided/rma/internal/platform"
