package latch_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/latch"
)

// TestLockExcludes makes goroutines count together, with short and long holds. During some long holds other goroutines
// run.
func TestLockExcludes(t *testing.T) {
	const goroutines, turns = 12, 3000
	var (
		l        latch.Lock
		together sync.WaitGroup
		count    int
	)
	for i := range goroutines {
		together.Go(func() {
			for turn := range turns {
				switch (i + turn) % 3 {
				case 0:
					l.Lock()
					before := count
					if turn%500 == 0 {
						for range goroutines {
							runtime.Gosched()
						}
					}
					count = before + 1
					l.Unlock()
				case 1:
					l.LockShort()
					count++
					l.UnlockShort()
				default:
					l.LockShort()
					count++
					l.Extend()
					l.Unlock()
				}
			}
		})
	}
	together.Wait()
	require.Equal(t, goroutines*turns, count)
}

func BenchmarkLockShort(b *testing.B) {
	var l latch.Lock
	count := 0
	for b.Loop() {
		l.LockShort()
		count++
		l.UnlockShort()
	}
}

// Additions to a queue hold the lock for a short time, and sending holds it for a long time.
func ExampleLock() {
	var l latch.Lock
	var queue []int
	add := func(i int) {
		l.LockShort()
		queue = append(queue, i)
		l.UnlockShort()
	}
	add(1)
	add(2)
	l.Lock()
	fmt.Println("sending", queue)
	l.Unlock()
	// Output: sending [1 2]
}
