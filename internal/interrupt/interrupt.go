// Package interrupt lets a command catch signals as os/signal does, but for those that were ignored when the process
// started: nohup, and a shell whose script says trap "" INT, start a process so that it goes on, and [signal.Notify]
// would end that.
//
//	ctx, stop := interrupt.Context(context.Background(), os.Interrupt, syscall.SIGTERM)
//	defer stop()
//
// Go's runtime itself takes over signals other than SIGHUP, SIGINT and those that stop and continue a process before
// anything can see that they were ignored: these are caught.
package interrupt

import (
	"context"
	"os"
	"os/signal"
	"slices"
)

// Notify is [signal.Notify] of those of the signals that were not ignored when the process started. Unlike there, none
// means none.
func Notify(c chan<- os.Signal, signals ...os.Signal) {
	if heeded := heed(signals); len(heeded) > 0 {
		signal.Notify(c, heeded...)
	}
}

// Context is [signal.NotifyContext] of those of the signals that were not ignored when the process started. Unlike
// there, none means none, and signals are caught no more once the context has ended: a second one ends the process.
func Context(parent context.Context, signals ...os.Signal) (ctx context.Context, stop context.CancelFunc) {
	if heeded := heed(signals); len(heeded) > 0 {
		ctx, stop = signal.NotifyContext(parent, heeded...)
		context.AfterFunc(ctx, stop)
		return ctx, stop
	}
	return context.WithCancel(parent)
}

func heed(signals []os.Signal) []os.Signal {
	return slices.DeleteFunc(slices.Clone(signals), func(s os.Signal) bool { return signal.Ignored(s) || atStart(s) })
}
