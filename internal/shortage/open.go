package shortage

import (
	"os"
	"testing"
)

// OpenDescriptors returns the number of descriptors that this process has open. It skips the test where the system has no
// /proc/self/fd.
func OpenDescriptors(t testing.TB) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skipf("skipped: the number of open descriptors is not known: %v", err)
	}
	return len(entries)
}
