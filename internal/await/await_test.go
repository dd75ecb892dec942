package await

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTrue(t *testing.T) {
	var state atomic.Int32
	go func() { state.Store(1) }()
	True(t, "the other goroutine", func() bool { return state.Load() == 1 })
}

func TestUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		err := Until(t.Context(), "what never comes", func() bool { return false })
		require.EqualError(t, err, "await: waiting for what never comes: did not come about in 2m0s")
		require.Equal(t, Limit, time.Since(begin))
		ended, end := context.WithCancel(t.Context())
		end()
		require.ErrorIs(t, Until(ended, "what never comes", func() bool { return false }), context.Canceled)
		require.NoError(t, Until(ended, "what is there", func() bool { return true }))
	})
}

// After a check that takes long there is a pause before the next one.
func TestLooksLeaveTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		require.Error(t, Until(t.Context(), "what never comes", func() bool {
			looks++
			time.Sleep(10 * time.Millisecond) // computes
			return false
		}))
		require.InDelta(t, Limit/(100*time.Millisecond), looks, 1)
	})
}

func TestReceive(t *testing.T) {
	values := make(chan int, 1)
	values <- 3
	require.Equal(t, 3, Receive(t, "a value", values))
	close(values)
	Closed(t, "the end", values)
}

func waits(c chan int) { <-c }

func TestParked(t *testing.T) {
	channel := make(chan int)
	for range 2 {
		go waits(channel)
	}
	Parked(t, "await.waits", 2)
	close(channel)
	True(t, "both to go on", func() bool { return parked(stacks(), "waits") == 0 })
}

func TestParkedInATrace(t *testing.T) {
	const trace = `goroutine 1 [running]:
a/b.(*T).Lock(0x1, {0x2, 0x3})
	/b/t.go:3 +0x1

goroutine 2 [select, 2 minutes]:
a/b.wait(...)
	/b/t.go:9
a/b.(*T).Lock(0x1, {0x2, 0x3})
	/b/t.go:3 +0x1
created by a/b.start in goroutine 1
	/b/t.go:1 +0x1

goroutine 3 [runnable]:
a/b.wait(0x1)
	/b/t.go:9

goroutine 4 [sync.Cond.Wait]:
a/b.(*T[...]).TryLock(0x1)
	/b/t.go:9
`
	for function, want := range map[string]int{
		"a/b.(*T).Lock": 1, "(*T).Lock": 1, "Lock": 1, "ock": 0, "b.wait": 1, "wait": 1, "start": 0, "a/b.(*T[...]).TryLock": 1,
	} {
		require.Equal(t, want, parked(trace, function), function)
	}
}
