// Package interrupt lets a command catch signals as os/signal does, but for those that were ignored when the process
// started: nohup, and a shell whose script says trap "" INT, start a process so that it goes on, and [signal.Notify]
// would end that.
//
//	ctx, stop := interrupt.Context(context.Background(), os.Interrupt, syscall.SIGTERM)
//	defer stop()
//
// Signals other than SIGHUP, SIGINT and those that stop and continue a process are caught always, SIGTERM and SIGQUIT among them. Go's
// runtime catches these itself before any code of a program runs, even that of an init function, and keeps what it found in
// a variable that no package can read. Then neither the kernel nor [signal.Ignored] knows that they were ignored.
package interrupt

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"

	_ "github.com/onesided/rma/internal/platform"
)

// Notify is [signal.Notify] of those of the signals that were not ignored when the process started. Unlike there, none
// means none.
func Notify(c chan<- os.Signal, signals ...os.Signal) {
	if heeded := heed(signals); len(heeded) > 0 {
		signal.Notify(c, heeded...)
	}
}

// Context is [signal.NotifyContext] of those of the signals that were not ignored when the process started. Unlike
// there, none means none, the cause of the end is an [Error], and signals are caught no more once the context has ended: a
// second one ends the process.
func Context(parent context.Context, signals ...os.Signal) (ctx context.Context, stop context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	came := make(chan os.Signal, 1)
	Notify(came, signals...)
	stop = func() {
		signal.Stop(came)
		cancel(nil)
	}
	go func() {
		select {
		case s := <-came:
			signal.Stop(came)
			cancel(Error{s})
		case <-ctx.Done():
			signal.Stop(came)
		}
	}()
	return ctx, stop
}

// An Error is the cause of the end of a [Context] that a signal has ended.
type Error struct{ Signal os.Signal }

func (e Error) Error() string { return fmt.Sprintf("%v signal received", e.Signal) }

// Is reports whether target is [context.Canceled], which the Error is a kind of.
func (e Error) Is(target error) bool { return target == context.Canceled }

func heed(signals []os.Signal) []os.Signal {
	return slices.DeleteFunc(slices.Clone(signals), func(s os.Signal) bool { return signal.Ignored(s) || atStart(s) })
}
