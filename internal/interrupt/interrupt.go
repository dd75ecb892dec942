// Package interrupt lets a command catch signals as os/signal does, except those that were ignored when the process
// started. nohup, and a shell script with trap "" INT, start a process with ignored signals so that it survives them,
// and [signal.Notify] would undo that.
//
//	ctx, stop := interrupt.Context(context.Background(), os.Interrupt, syscall.SIGTERM)
//	defer stop()
//
// The exception holds for SIGHUP, SIGINT and the signals that stop and continue a process. Other signals, such as
// SIGTERM and SIGQUIT, are always caught. Go's runtime catches these before any code of a program runs, even an init
// function. It keeps the previous state in a variable that no package can read. So neither the kernel nor
// [signal.Ignored] knows that they were ignored.
package interrupt

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	_ "github.com/onesided/rma/internal/platform"
)

// Notify is like [signal.Notify], for those of the signals that were not ignored when the process started. No signals
// means none.
func Notify(c chan<- os.Signal, signals ...os.Signal) {
	if heeded := heed(signals); len(heeded) > 0 {
		signal.Notify(c, heeded...)
	}
}

// Context is like [signal.NotifyContext], for those of the signals that were not ignored when the process started. No
// signals means none. The cause of the end is an [Error]. Once the context has ended, signals are no longer caught: a
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

func (e Error) Error() string {
	if number, ok := e.Signal.(syscall.Signal); ok {
		if name := unix.SignalName(number); name != "" {
			return "received " + name
		}
	}
	return fmt.Sprintf("received signal %v", e.Signal)
}

// Is reports whether target is [context.Canceled].
func (e Error) Is(target error) bool { return target == context.Canceled }

func heed(signals []os.Signal) []os.Signal {
	return slices.DeleteFunc(slices.Clone(signals), func(s os.Signal) bool { return signal.Ignored(s) || atStart(s) })
}
