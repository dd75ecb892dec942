package hashtable

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/world"
)

// gather returns the elements of all ranks. Every rank passes the same number.
func gather[T any](s *script, mine []T) []T {
	all := make([]T, len(mine)*s.World.Size())
	s.OK(world.AllGather(s.Ctx, s.World, mine, all))
	return all
}

// concurrently runs body on several goroutines of this rank. It ends the body with their errors.
func (s *script) concurrently(n int, body func(s *script, g int)) {
	errs := make([]error, n)
	var all sync.WaitGroup
	for g := range n {
		all.Go(func() {
			errs[g] = jobtest.Checked(func() { body(s, g) })
		})
	}
	all.Wait()
	s.OK(errors.Join(errs...))
}

const goroutines = 3

// The sums that Adds of 1 to one key return are all different. They come from all ranks and goroutines, from single
// operations and batches.
var tickets = register("tickets", func(s *script) {
	t := s.table(roomy)
	const each = 120
	mine := make([]uint64, goroutines*each)
	s.concurrently(goroutines, func(s *script, g int) {
		got := mine[g*each : (g+1)*each]
		batch := t.NewBatch()
		for i := range got {
			if g > 0 {
				batch.Add("ticket", 1)
				continue
			}
			var err error
			got[i], err = t.Add(s.Ctx, "ticket", 1)
			s.OK(err)
		}
		s.OK(batch.Run(s.Ctx))
		for i := range batch.Len() {
			got[i] = batch.Result(i).Count
		}
	})
	all := gather(s, mine)
	slices.Sort(all)
	for i, ticket := range all {
		s.Check(ticket == uint64(i)+1, "ticket %d of the sorted ones is %d", i+1, ticket)
	}
	s.close(t)
})

// change queues a random operation on an entry, for the kind of value that the key has.
func change(batch *Batch, random *rand.Rand, key int) int {
	name := fmt.Sprint(key)
	switch {
	case random.IntN(2) == 0:
		return batch.Delete(name)
	case key%2 == 0:
		return batch.Put(name, []byte(name))
	default:
		return batch.Add(name, 1)
	}
}

// Every operation reports whether its key was there. So operations that make an entry and operations that remove it
// alternate. At the end a key was made once more than removed if it exists, and otherwise equally often.
var turns = register("making and removing", func(s *script) {
	for round, mask := range []uint64{^uint64(0), 0} {
		t := s.table(Config{Slots: 64, RecordBytes: 1 << 20})
		if mask == 0 {
			t.hash = func(string) uint64 { return 0 }
		}
		const keys, runs = 4, 60
		var perGoroutine [goroutines][keys]int64
		s.concurrently(goroutines, func(s *script, g int) {
			random := s.random(round*goroutines + g)
			batch := t.NewBatch()
			var key [5]int
			for range runs {
				// A batch has several operations, some of them on the same key.
				some := key[:1+random.IntN(len(key))]
				for i := range some {
					some[i] = random.IntN(keys)
					change(batch, random, some[i])
				}
				s.OK(batch.Run(s.Ctx))
				for i, k := range some {
					deleted, found := batch.ops[i].kind == opDelete, batch.Result(i).Found
					if deleted && found {
						perGoroutine[g][k]--
					} else if !deleted && !found {
						perGoroutine[g][k]++
					}
				}
				batch.Reset()
			}
		})
		balance := make([]int64, keys)
		for _, some := range perGoroutine {
			for k, n := range some {
				balance[k] += n
			}
		}
		sums := make([]int64, keys)
		for i, n := range gather(s, balance) {
			sums[i%keys] += n
		}
		for k, n := range sums {
			probe := t.NewBatch()
			if k%2 == 0 {
				probe.Get(fmt.Sprint(k))
			} else {
				probe.Count(fmt.Sprint(k))
			}
			s.OK(probe.Run(s.Ctx))
			found := probe.Result(0).Found
			s.Check(n == 0 && !found || n == 1 && found, "key %d was made %d times more than removed, and is there: %v", k, n, found)
		}
		s.close(t)
	}
})

// A range yields every entry that stays exactly once, whatever all ranks add, remove and change meanwhile.
var ranging = register("ranges beside writers", func(s *script) {
	t := s.table(roomy)
	const staying, rounds = 300, 40
	name := func(i int) string { return fmt.Sprint("staying ", i) }
	for i := s.World.Rank(); i < staying; i += s.World.Size() {
		s.OK(t.Put(s.Ctx, name(i), []byte{0}))
	}
	s.Barrier()
	s.concurrently(2, func(s *script, g int) {
		if g == 1 {
			batch := t.NewBatch()
			for round := range rounds {
				for i := range 10 {
					batch.Put(name((round*10+i)%staying), []byte{byte(round)})
					batch.Add(fmt.Sprint("new ", s.World.Rank(), round, i), 1)
					batch.Delete(fmt.Sprint("new ", s.World.Rank(), round-1, i))
				}
				s.OK(batch.Run(s.Ctx))
				batch.Reset()
			}
			return
		}
		owned := 0
		for i := range staying {
			if t.Owner(name(i)) == s.World.Rank() {
				owned++
			}
		}
		for range rounds {
			seen := map[string]bool{}
			stayed := 0
			for key, value := range t.Local() {
				s.Check(!seen[key], "key %q is seen twice", key)
				seen[key] = true
				if !value.Counter {
					stayed++
				}
			}
			s.Check(stayed == owned, "%d entries that stay are seen, of %d", stayed, owned)
		}
	})
	s.Barrier()
	for range t.Local() {
		break
	}
	s.close(t)
})

func TestManyGoroutines(t *testing.T) { everywhere(t, tickets, turns, ranging) }
