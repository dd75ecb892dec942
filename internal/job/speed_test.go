package job_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/world"
)

// rounds are small calls as a program repeats them.
var rounds = []struct {
	name string
	make func(s *script, bytes int) func() error
}{
	{"Barrier", func(s *script, _ int) func() error { return func() error { return s.World.Barrier(s.Ctx) } }},
	{"Broadcast", func(s *script, bytes int) func() error {
		buffer := make([]byte, bytes)
		return func() error { return world.Broadcast(s.Ctx, s.World, 0, buffer) }
	}},
	{"AllReduce", func(s *script, bytes int) func() error {
		in, out := make([]int64, bytes/8), make([]int64, bytes/8)
		return func() error { return world.AllReduce(s.Ctx, s.World, in, out, add[int64]) }
	}},
	{"AllReduceOp", func(s *script, bytes int) func() error {
		in, out := make([]int64, bytes/8), make([]int64, bytes/8)
		return func() error { return world.AllReduceOp(s.Ctx, s.World, in, out, world.Sum) }
	}},
}

// No small call allocates, on any rank, once its connections are made.
func TestCallsAllocateNothing(t *testing.T) {
	// Some share a core, and others do not.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	for _, n := range []int{2, 8} {
		for _, c := range rounds {
			t.Run(fmt.Sprintf("%s/%d ranks", c.name, n), func(t *testing.T) { allocateNothing(t, n, c.make) })
		}
	}
}

func allocateNothing(t *testing.T, n int, make func(s *script, bytes int) func() error) {
	const runs = 200
	require.NoError(t, world.Run(context.Background(), n, scripted(func(s *script) {
		s.Ctx = context.Background()
		call := make(s, 64)
		for range 100 {
			s.OK(call())
		}
		s.OK(s.World.Barrier(s.Ctx))
		if s.me != 0 {
			// AllocsPerRun makes one call to warm up.
			for range runs + 1 {
				s.OK(call())
			}
			return
		}
		allocations := testing.AllocsPerRun(runs, func() { s.OK(call()) })
		s.Check(allocations == 0, "%v allocations", allocations)
	})))
}

func benchmark(b *testing.B, n, call, bytes int) {
	b.Run(fmt.Sprintf("%d ranks", n), func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(bytes))
		if err := world.Run(context.Background(), n, scripted(func(s *script) {
			f := rounds[call].make(s, bytes)
			s.OK(f())
			s.OK(s.World.Barrier(s.Ctx))
			if s.me == 0 {
				b.ResetTimer()
			}
			for range b.N {
				s.OK(f())
			}
		})); err != nil {
			b.Fatal(err)
		}
	})
}

func BenchmarkBarrier(b *testing.B) {
	for _, n := range []int{2, 4, 16, 64} {
		benchmark(b, n, 0, 0)
	}
}

func BenchmarkBroadcast(b *testing.B) {
	for _, bytes := range []int{8, 64 << 10} {
		b.Run(fmt.Sprintf("%d bytes", bytes), func(b *testing.B) {
			for _, n := range []int{2, 4, 16} {
				benchmark(b, n, 1, bytes)
			}
		})
	}
}

func BenchmarkAllReduce(b *testing.B) {
	for _, bytes := range []int{8, 64 << 10} {
		b.Run(fmt.Sprintf("%d bytes", bytes), func(b *testing.B) {
			for _, n := range []int{2, 4, 16} {
				benchmark(b, n, 2, bytes)
			}
		})
	}
}
