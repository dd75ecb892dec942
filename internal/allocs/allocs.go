package allocs

import (
	"runtime"
	"testing"
)

// repeats is how often AtMost measures a call that seems to allocate too much.
const repeats = 10

// Of returns how many bytes the process allocates during a call.
func Of(call func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	call()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

// AtMost fails the test if a call allocates more than some bytes. It may make the call several times.
func AtMost(t testing.TB, bytes int, call func()) {
	t.Helper()
	least := Of(call)
	for i := 1; i < repeats && least > bytes; i++ {
		least = min(least, Of(call))
	}
	if least > bytes {
		t.Fatalf("%d bytes were allocated, allowed are %d", least, bytes)
	}
}
