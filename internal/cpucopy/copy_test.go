package cpucopy_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/cpucopy"
)

// methods returns the methods that this build and processor have.
func methods(tb testing.TB) []cpucopy.Method {
	var have []cpucopy.Method
	for m := cpucopy.Auto; m <= cpucopy.String; m++ {
		previous, err := cpucopy.Use(m)
		if err != nil {
			tb.Logf("skipped: %v", err)
			continue
		}
		have = append(have, m)
		_, err = cpucopy.Use(previous)
		require.NoError(tb, err)
	}
	return have
}

func use(tb testing.TB, m cpucopy.Method) {
	previous, err := cpucopy.Use(m)
	require.NoError(tb, err)
	tb.Cleanup(func() {
		_, err := cpucopy.Use(previous)
		require.NoError(tb, err)
	})
}

func noise(n int) []byte {
	random := rand.New(rand.NewPCG(1, uint64(n)))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	return b
}

const guard = 128

// TestCopy copies every length near the limits of the methods, at every alignment of both sides, and checks all bytes
// around the destination.
func TestCopy(t *testing.T) {
	var lengths []int
	for n := range 1100 {
		lengths = append(lengths, n)
	}
	for _, edge := range []int{4096, 24 << 10, 512 << 10, 1 << 20, 3 << 19} {
		lengths = append(lengths, edge-65, edge-1, edge, edge+1, edge+63, edge+257)
	}
	most := lengths[len(lengths)-1] + 2*guard
	source := noise(most)
	background := noise(most + 1)[1:]
	got, want := make([]byte, most), make([]byte, most)
	for _, m := range methods(t) {
		t.Run(m.String(), func(t *testing.T) {
			use(t, m)
			random := rand.New(rand.NewPCG(2, 3))
			for _, n := range lengths {
				for range 6 {
					to, from := guard+random.IntN(64)-64, random.IntN(64)
					window := n + 2*guard
					copy(got[:window], background)
					copy(want[:window], background)
					copy(want[to:to+n], source[from:])
					require.Equal(t, n, cpucopy.Copy(got[to:to+n], source[from:]))
					if !bytes.Equal(want[:window], got[:window]) {
						t.Fatalf("%d bytes from offset %d to offset %d differ", n, from, to)
					}
				}
			}
		})
	}
}

// TestOverlap copies within one buffer in both directions, as copy does.
func TestOverlap(t *testing.T) {
	for _, m := range methods(t) {
		t.Run(m.String(), func(t *testing.T) {
			use(t, m)
			const most = 3<<19 + 7
			background := noise(3 * most)
			got, want := make([]byte, 3*most), make([]byte, 3*most)
			for _, n := range []int{512, 1000, 40000, 1 << 20, most} {
				for _, by := range []int{-n + 1, -300, -64, -1, 0, 1, 64, 300, n - 1} {
					got, want := got[:3*n], want[:3*n]
					copy(got, background)
					copy(want, background)
					copy(want[n+by:2*n+by], want[n:2*n])
					cpucopy.Copy(got[n+by:2*n+by], got[n:2*n])
					require.True(t, bytes.Equal(want, got), "%d bytes moved by %d", n, by)
				}
			}
		})
	}
}

func TestLengthsDiffer(t *testing.T) {
	require.Equal(t, 3, cpucopy.Copy(make([]byte, 3), make([]byte, 9)))
	require.Equal(t, 600, cpucopy.Copy(make([]byte, 900), make([]byte, 600)))
	require.Equal(t, 0, cpucopy.Copy(nil, make([]byte, 600)))
}

func TestMethods(t *testing.T) {
	for m := cpucopy.Auto; m <= cpucopy.String; m++ {
		parsed, err := cpucopy.Parse(m.String())
		require.NoError(t, err)
		require.Equal(t, m, parsed)
	}
	_, err := cpucopy.Parse("fast")
	require.EqualError(t, err, `cpucopy: no method "fast": allowed are [auto plain vector string]`)
	_, err = cpucopy.Use(cpucopy.String + 1)
	require.ErrorContains(t, err, "Method(4)")
	require.Zero(t, testing.AllocsPerRun(100, func() { cpucopy.Copy(make([]byte, 700), make([]byte, 700)) }))
}

func FuzzCopy(f *testing.F) {
	f.Add(uint16(3), uint16(5), uint32(700))
	f.Add(uint16(64), uint16(80), uint32(30000))
	buffer := noise(1 << 20)
	f.Fuzz(func(t *testing.T, to, from uint16, n uint32) {
		n %= 400_000
		got := bytes.Clone(buffer)
		want := bytes.Clone(buffer)
		copy(want[to:int(to)+int(n)], want[from:int(from)+int(n)])
		cpucopy.Copy(got[to:int(to)+int(n)], got[from:int(from)+int(n)])
		if !bytes.Equal(want, got) {
			t.Fatalf("%d bytes from %d to %d differ", n, from, to)
		}
	})
}

func BenchmarkCopy(b *testing.B) {
	source, to := noise(8<<20), make([]byte, 8<<20)
	for _, n := range []int{512, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20} {
		for _, ahead := range []int{0, 16} {
			for _, m := range methods(b) {
				b.Run(fmt.Sprintf("%d/ahead=%d/%v", n, ahead, m), func(b *testing.B) {
					use(b, m)
					b.SetBytes(int64(n))
					for b.Loop() {
						cpucopy.Copy(to[ahead:ahead+n], source)
					}
				})
			}
		}
	}
}

func ExampleCopy() {
	to := make([]byte, 1000)
	n := cpucopy.Copy(to, bytes.Repeat([]byte("window "), 100))
	fmt.Println(n, string(to[:13]))
	// Output: 700 window window
}
