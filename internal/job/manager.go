package job

import (
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/onesided/rma/internal/bootstrap/pmi"
)

// endWithManager ends this process when the manager of its job is gone, as a launcher that was killed would have done
// it: by SIGTERM, which a program may catch. A launcher's own means do not reach every process that has been started in
// between, such as by a shell.
func endWithManager(client *pmi.Client, logger *slog.Logger) {
	if !client.AwaitLoss() {
		return
	}
	// Standard error may be a pipe that the launcher read. Unless a program asks for SIGPIPE, Go ends it at a write there, and
	// what it does at SIGTERM would be cut short.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	// A logger may take long, or for ever.
	_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
	logger.Error("the launcher of this job is gone: this process gets SIGTERM", "rank", client.Rank())
}
