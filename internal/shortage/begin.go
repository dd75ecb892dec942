//go:build unix

package shortage

import (
	"sync"
	"testing"
)

// Begin is Descriptors for a test, which fails if the shortage does not begin or end. The shortage ends with the first
// call of end, or with the test. It must be called by the goroutine of the test.
func Begin(t testing.TB, left int) (end func()) {
	t.Helper()
	over, err := Descriptors(left)
	if err != nil {
		t.Fatal(err)
	}
	end = sync.OnceFunc(func() {
		if err := over(); err != nil {
			t.Errorf("shortage: ending it: %v", err)
		}
	})
	t.Cleanup(end)
	return end
}
