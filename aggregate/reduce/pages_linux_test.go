package reduce_test

import (
	"math/rand/v2"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/onesided/rma/aggregate/reduce"
)

// TestVectorsStayWithinMemory combines elements directly before and directly behind
// memory that can be neither read nor written: an access to it ends the program.
func TestVectorsStayWithinMemory(t *testing.T) {
	dst, src := island(t), island(t)
	forVectors(t, func(t *testing.T, kind reduce.Kind, vector, plain reduce.Func) {
		copy(src, pool(kind, len(src), rand.New(rand.NewPCG(3, uint64(kind)))))
		want := make([]byte, len(dst))
		for n := range min(longest, len(dst)/kind.Size()) + 1 {
			bytes := n * kind.Size()
			for _, at := range []int{0, len(dst) - bytes} {
				clear(dst)
				clear(want)
				apply(vector, dst[at:], src[at:], kind, n)
				apply(plain, want[at:], src[at:], kind, n)
				if !same(kind, dst, want) {
					t.Fatalf("%d elements at byte %d of a page are not as plain makes them", n, at)
				}
			}
		}
	})
}

// island is a page between two that are out of reach.
func island(t *testing.T) []byte {
	t.Helper()
	page := os.Getpagesize()
	memory, err := unix.Mmap(-1, 0, 3*page, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Munmap(memory); err != nil {
			t.Error(err)
		}
	})
	within := memory[page : 2*page : 2*page]
	if err := unix.Mprotect(within, unix.PROT_READ|unix.PROT_WRITE); err != nil {
		t.Fatal(err)
	}
	return within
}
