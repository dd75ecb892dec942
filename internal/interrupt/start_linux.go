package interrupt

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// atStart reports whether a signal was ignored when the process started. The runtime knows that of SIGHUP and SIGINT
// only. It does not change the signals that stop a process, so the kernel knows about those.
func atStart(s os.Signal) bool {
	number, ok := s.(syscall.Signal)
	return ok && ignored()>>(number-1)&1 == 1
}

// ignored returns the signals that the kernel drops for this process, one bit each. Without /proc it returns 0.
var ignored = sync.OnceValue(func() (mask uint64) {
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if digits, ok := strings.CutPrefix(line, "SigIgn:"); ok {
			mask, _ = strconv.ParseUint(strings.TrimSpace(digits), 16, 64)
		}
	}
	return mask
})
