package regcache_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/btree"

	"github.com/onesided/rma/regcache"
)

// addresses are those of n buffers, in no order.
func addresses(n int) []uint64 {
	all := make([]uint64, n)
	for i := range all {
		all[i] = uint64(i) * 8192
	}
	rand.New(rand.NewPCG(1, 1)).Shuffle(n, func(i, k int) { all[i], all[k] = all[k], all[i] })
	return all
}

// The usage table beside a balanced tree, by the number of buffers (paper B, figure 3).
func BenchmarkUse(b *testing.B) {
	for _, n := range []int{10, 1000, 100_000, 500_000} {
		all := addresses(n)
		b.Run(fmt.Sprintf("table/buffers=%d", n), func(b *testing.B) {
			var u usage
			for _, a := range all {
				u.Use(a, 4096, 1<<30, 1<<30)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); {
				u.Use(all[i], 4096, 1<<30, 1<<30)
				if i++; i == n {
					i = 0
				}
			}
		})
		b.Run(fmt.Sprintf("tree/buffers=%d", n), func(b *testing.B) {
			type counted struct {
				address uint64
				uses    *int
			}
			u := btree.NewG(16, func(a, b counted) bool { return a.address < b.address })
			for _, a := range all {
				u.ReplaceOrInsert(counted{a, new(int)})
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); {
				found, _ := u.Get(counted{address: all[i]})
				*found.uses++
				if i++; i == n {
					i = 0
				}
			}
		})
	}
}

// What it takes to find a registered buffer, by its address and by its entry.
func BenchmarkFind(b *testing.B) {
	for _, n := range []int{10, 1000, 100_000} {
		all := addresses(n)
		c := regcache.New[int](plenty)
		entries := make([]*regcache.Entry[int], n)
		for i, a := range all {
			entries[i] = c.Add(a, a+4096, i)
			c.Release(entries[i])
		}
		b.Run("search/"+entriesName(n), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); {
				c.Release(c.Find(all[i], all[i]+4096))
				if i++; i == n {
					i = 0
				}
			}
		})
		b.Run("known/"+entriesName(n), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); {
				if !c.Again(entries[i], all[i], all[i]+4096) {
					b.Fatal("it is not there")
				}
				c.Release(entries[i])
				if i++; i == n {
					i = 0
				}
			}
		})
	}
}

func entriesName(n int) string { return fmt.Sprintf("entries=%d", n) }
