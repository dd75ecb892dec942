package interrupt

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// atStart reports whether a signal was ignored before anything of this package was called. The runtime knows that of
// SIGHUP and SIGINT alone; it leaves the signals that stop a process as they were, so that the kernel knows.
func atStart(s os.Signal) bool {
	number, ok := s.(syscall.Signal)
	return ok && ignored()>>(number-1)&1 == 1
}

// ignored are the signals that the kernel drops for this process, a bit each. Where there is no /proc it is none.
var ignored = sync.OnceValue(func() (mask uint64) {
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if digits, ok := strings.CutPrefix(line, "SigIgn:"); ok {
			mask, _ = strconv.ParseUint(strings.TrimSpace(digits), 16, 64)
		}
	}
	return mask
})
