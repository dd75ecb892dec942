package job

import (
	"runtime"
	"syscall"
)

// yieldToProcesses gives the processor to another process. Where the ranks are
// processes, more than there are processors, that is who has to run. Gosched is
// not for them: it would offer this goroutine to an idle thread of its own process
// first, for the price of waking that.
func yieldToProcesses() {
	if runtime.GOMAXPROCS(0) == 1 {
		runtime.Gosched()
	}
	_, _, _ = syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0)
}
