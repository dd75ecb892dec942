package logqueue_test

import (
	"log/slog"
	"os"

	"github.com/onesided/rma/internal/logqueue"
)

// A writer to the pipe of standard output waits for its reader. A caller of the queue's logger does not.
func Example() {
	untimed := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	queue := logqueue.New(slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: untimed})))
	queue.Logger().Warn("connection refused", "peer", "192.0.2.1")
	queue.Close()
	// Output:
	// level=WARN msg="connection refused" peer=192.0.2.1
}
