package allocs_test

import (
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/allocs"
)

var sink []byte

// failing records that a test would have failed.
type failing struct {
	testing.TB
	failed bool
}

func (f *failing) Helper()               {}
func (f *failing) Fatalf(string, ...any) { f.failed = true }

func TestAtMost(t *testing.T) {
	for _, c := range []struct {
		allocates, allowed int
		fails              bool
	}{
		{0, 0, false},
		{16, 16, false},
		{17, 16, true},
		{64 << 10, 64 << 10, false},
		{64<<10 + 1, 64 << 10, true},
	} {
		f := failing{TB: t}
		allocs.AtMost(&f, c.allowed, func() {
			if c.allocates > 0 {
				sink = make([]byte, c.allocates)
			}
		})
		require.Equal(t, c.fails, f.failed, "%d of %d", c.allocates, c.allowed)
	}
}

// Allocations by another goroutine during some of the calls do not count.
func TestAtMostBesideOthers(t *testing.T) {
	var calls, others atomic.Int32
	allocs.AtMost(t, 1<<10, func() {
		if calls.Add(1) > 3 {
			return
		}
		done := others.Load() + 1
		go func() {
			sink = make([]byte, 1<<20)
			others.Add(1)
		}()
		for others.Load() < done {
			runtime.Gosched()
		}
	})
	require.GreaterOrEqual(t, calls.Load(), int32(4))
}
