package world

import (
	"log/slog"
	"os"
	"syscall"

	"github.com/onesided/rma/world/pmi"
)

// endWithManager ends this process when the manager of its job is gone, as a launcher that was killed would have done
// it: by SIGTERM, which a program may catch. A launcher's own means do not reach every process that has been started in
// between, such as by a shell.
func endWithManager(client *pmi.Client, logger *slog.Logger) {
	if client.AwaitLoss() {
		logger.Error("the launcher of this job is gone: this process gets SIGTERM", "rank", client.Rank())
		_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
	}
}
