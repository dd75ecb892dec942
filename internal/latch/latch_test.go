package latch_test

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/latch"
)

// TestExclusion makes more goroutines than there are processors count together.
func TestExclusion(t *testing.T) {
	const goroutines, turns = 16, 20_000
	var (
		l        latch.Latch
		together sync.WaitGroup
		count    int
	)
	for range goroutines {
		together.Go(func() {
			for range turns {
				l.Lock()
				count++
				l.Unlock()
			}
		})
	}
	together.Wait()
	require.Equal(t, goroutines*turns, count)
}

// TestPublication makes one goroutine write two words and release a third. A goroutine that sees the third must see
// both others.
func TestPublication(t *testing.T) {
	var a, b int
	var word, taken atomic.Uint32
	const turns = 100_000
	go func() {
		for i := range turns {
			a, b = i, -i
			latch.Release(&word, uint32(i+1))
			for taken.Load() != uint32(i+1) {
				runtime.Gosched()
			}
		}
	}()
	for i := range turns {
		for word.Load() != uint32(i+1) {
			runtime.Gosched()
		}
		if a != i || b != -i {
			t.Fatalf("word %d, but a is %d and b %d", i+1, a, b)
		}
		taken.Store(uint32(i + 1))
	}
}

func BenchmarkLock(b *testing.B) {
	b.Run("latch", func(b *testing.B) {
		var l latch.Latch
		count := 0
		for b.Loop() {
			l.Lock()
			count++
			l.Unlock()
		}
	})
	b.Run("mutex", func(b *testing.B) {
		var l sync.Mutex
		count := 0
		for b.Loop() {
			l.Lock()
			count++
			l.Unlock()
		}
	})
}

func BenchmarkStore(b *testing.B) {
	var word atomic.Uint32
	b.Run("release", func(b *testing.B) {
		for b.Loop() {
			latch.Release(&word, 1)
		}
	})
	b.Run("atomic", func(b *testing.B) {
		for b.Loop() {
			word.Store(1)
		}
	})
}

func ExampleLatch() {
	var l latch.Latch
	total := 0
	for i := range 3 {
		l.Lock()
		total += i
		l.Unlock()
	}
	fmt.Println(total)
	// Output: 3
}
