package hashtable

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/jobtest"
)

// numbered returns key i of a rank.
func numbered(rank, i int) string { return fmt.Sprintf("rank %d, key %6d", rank, i) }

// remote reports whether some rank's memory is not mapped.
func (s *script) remote() bool {
	for rank := range s.World.Size() {
		if !s.World.Mapped(rank) {
			return true
		}
	}
	return false
}

// All ranks put many keys into a table with few slots, and delete a third of them again. Each rank finds its own keys
// at any time, and all ranks find all keys at the end.
var grows = register("a table that grows", func(s *script) {
	t := s.table(Config{Slots: 8, RecordBytes: 4 << 20})
	// The slots of a rank with this number of keys are moved in more than one part.
	keys := upTo(1600, 4000)
	if s.remote() {
		keys = upTo(200, 1200)
	}
	s.concurrently(2, func(s *script, g int) {
		rank := s.World.Rank()*2 + g
		there := func(i int) bool { return i%3 > 0 }
		look := func(i int, deleted bool) {
			value, found, err := t.Get(s.Ctx, numbered(rank, i))
			s.OK(err)
			if want := there(i) || !deleted; found != want || found && string(value) != fmt.Sprint(i) {
				s.Check(false, "%q is %q, %v, want it there: %v", numbered(rank, i), value, found, want)
			}
		}
		batch := t.NewBatch()
		for i := 0; i < keys; {
			batch.Reset()
			first := i
			for range 1 + i%40 {
				batch.Put(numbered(rank, i), fmt.Append(nil, i))
				i++
			}
			s.OK(batch.Run(s.Ctx))
			look(i-1, false)
			batch.Reset()
			for j := first; j < i; j++ {
				if !there(j) {
					batch.Delete(numbered(rank, j))
				}
			}
			s.OK(batch.Run(s.Ctx))
			for n := range batch.Len() {
				s.Check(batch.Result(n).Found, "a key is gone")
			}
			look(first, true)
			look(i*7%i, true)
		}
		for first := 0; first < keys; first += 100 {
			batch.Reset()
			for i := first; i < min(first+100, keys); i++ {
				batch.Get(numbered(rank, i))
			}
			s.OK(batch.Run(s.Ctx))
			for i := range batch.Len() {
				r, key := batch.Result(i), first+i
				s.Check(r.Found == there(key) && (!r.Found || string(r.Value) == fmt.Sprint(key)), "%q is %q, %v", numbered(rank, key), r.Value, r.Found)
			}
		}
	})
	s.Barrier()
	seen := map[string]bool{}
	entries, failed := t.All(s.Ctx)
	for key, value := range entries {
		s.Check(!seen[key], "%q is seen twice", key)
		var rank, i int
		_, err := fmt.Sscanf(key, "rank %d, key %d", &rank, &i)
		s.Check(err == nil && i%3 > 0 && string(value.Bytes) == fmt.Sprint(i), "%q is %q", key, value.Bytes)
		seen[key] = true
	}
	s.OK(failed())
	for rank := range 2 * s.World.Size() {
		for i := range keys {
			s.Check(seen[numbered(rank, i)] == (i%3 > 0), "%q is seen: %v", numbered(rank, i), seen[numbered(rank, i)])
		}
	}
	stats := t.Stats()
	s.Check(stats.Slots > keys && stats.Slots < 64*keys, "Stats are %+v", stats)
	s.close(t)
})

// Keys are added and removed, none of them twice. Slots and space are used again.
var churn = register("keys that come and go", func(s *script) {
	const alive = 100
	t := s.table(Config{Slots: 64, RecordBytes: 256 << 10})
	keys := upTo(4_000, 40_000) / fewer
	if s.remote() {
		keys = upTo(500, 4_000)
	}
	s.concurrently(2, func(s *script, g int) {
		rank := s.World.Rank()*2 + g
		batch, looks := t.NewBatch(), t.NewBatch()
		for first := 0; first < keys; first += alive / 4 {
			batch.Reset()
			for i := first; i < first+alive/4; i++ {
				batch.Add(numbered(rank, i), uint64(i)+1)
				if i >= alive {
					batch.Delete(numbered(rank, i-alive))
				}
			}
			s.OK(batch.Run(s.Ctx))
			looks.Reset()
			oldest := max(0, first-alive/2)
			for i := oldest; i < first; i += 9 {
				looks.Count(numbered(rank, i))
			}
			s.OK(looks.Run(s.Ctx))
			for n := range looks.Len() {
				r, i := looks.Result(n), oldest+9*n
				s.Check(r.Found && r.Count == uint64(i)+1, "%q is %d, %v", numbered(rank, i), r.Count, r.Found)
			}
			if first >= 2*alive {
				_, found, err := t.Count(s.Ctx, numbered(rank, first-2*alive))
				s.OK(err)
				s.Check(!found, "%q is there", numbered(rank, first-2*alive))
			}
		}
	})
	s.Barrier()
	stats := t.Stats()
	s.Check(stats.Slots < 64*alive, "Stats are %+v", stats)
	s.close(t)
})

// A range over a growing table yields each key once that is there all the time.
var rangedOver = register("a range over a table that grows", func(s *script) {
	const keys = 300
	more := upTo(1200, 6000)
	if s.remote() {
		more = upTo(200, 1000)
	}
	t := s.table(Config{Slots: 8, RecordBytes: 4 << 20})
	for i := range keys {
		s.OK(t.Put(s.Ctx, numbered(s.World.Rank(), i), fmt.Append(nil, i)))
	}
	s.Barrier()
	var over atomic.Bool
	s.concurrently(2, func(s *script, g int) {
		if g == 0 {
			defer over.Store(true)
			for i := range more {
				_, err := t.Add(s.Ctx, fmt.Sprint("more ", s.World.Rank(), " ", i), 1)
				s.OK(err)
				if i%2 == 0 {
					_, err := t.Delete(s.Ctx, fmt.Sprint("more ", s.World.Rank(), " ", i))
					s.OK(err)
				}
			}
			return
		}
		for !over.Load() {
			seen := map[string]bool{}
			entries, failed := t.All(s.Ctx)
			for key := range entries {
				s.Check(!seen[key], "%q is seen twice", key)
				seen[key] = true
			}
			s.OK(failed())
			local := map[string]bool{}
			for key := range t.Local() {
				s.Check(!local[key] && t.Owner(key) == s.World.Rank(), "%q is seen twice, or another's", key)
				local[key] = true
			}
			for rank := range s.World.Size() {
				for i := range keys {
					key := numbered(rank, i)
					s.Check(seen[key], "%q is not seen", key)
					s.Check(local[key] == (t.Owner(key) == s.World.Rank()), "%q is seen by itself: %v", key, local[key])
				}
			}
		}
	})
	s.close(t)
})

func TestGrowth(t *testing.T) { everywhere(t, grows, churn, rangedOver) }

// If a rank begins to move keys and stops at any point, other ranks move the rest.
func TestGrowthThatIsLeft(t *testing.T) {
	const keys, buckets = 900, 2 * partBuckets
	for moved := range 3 {
		t.Run(fmt.Sprint(moved, " parts"), func(t *testing.T) {
			alone(t, func(s *script) {
				table := s.table(Config{Slots: buckets * bucketSlots, RecordBytes: 1 << 20})
				for i := range keys {
					_, err := table.Add(s.Ctx, numbered(0, i), uint64(i))
					s.OK(err)
				}
				before := viewIn(table.local)
				level := before.current.level() + 1
				line, err := table.takeBlock(s.Ctx, 0, level)
				s.OK(err)
				_, err = table.publish(s.Ctx, 0, before.current, level, line)
				s.OK(err)
				v := viewIn(table.local)
				s.Check(v.moving(), "keys do not move: %+v", v)
				for range moved {
					_, _, err := table.moveNext(s.Ctx, 0, table.indexOf(v.current), table.indexOf(v.next))
					s.OK(err)
				}
				all := func() {
					for i := range keys {
						count, found, err := table.Count(s.Ctx, numbered(0, i))
						s.OK(err)
						s.Check(found && count == uint64(i), "%q is %d, %v", numbered(0, i), count, found)
					}
					seen := 0
					for range table.Local() {
						seen++
					}
					s.Check(seen >= keys, "%d are seen", seen)
				}
				all()
				s.Check(viewIn(table.local) == v, "readers have moved keys")
				for i := 0; viewIn(table.local) == v; i++ {
					s.Check(i < 20*buckets, "nobody goes on")
					_, err := table.Add(s.Ctx, numbered(1, i), 1)
					s.OK(err)
					found, err := table.Delete(s.Ctx, numbered(1, i))
					s.OK(err)
					s.Check(found, "what was added is not there")
				}
				all()
				s.close(table)
			})
		})
	}
}

// A rank reads the two words of a view at different moments. In between its index is replaced, and the next index as
// well. publish then replaces no index, and the keys continue to move.
func TestGrowthOfTwoMoments(t *testing.T) {
	const keys = 100
	alone(t, func(s *script) {
		table := s.table(Config{Slots: 256, RecordBytes: 1 << 20})
		for i := range keys {
			_, err := table.Add(s.Ctx, numbered(0, i), uint64(i))
			s.OK(err)
		}
		follow := func(current control) view {
			line, err := table.takeBlock(s.Ctx, 0, current.level()+1)
			s.OK(err)
			s.Check(line >= 0, "there is no room")
			_, err = table.publish(s.Ctx, 0, current, current.level()+1, line)
			s.OK(err)
			return viewIn(table.local)
		}
		first := viewIn(table.local)
		s.OK(table.moveAll(s.Ctx, 0, follow(first.current)))
		v := follow(viewIn(table.local).current)
		s.Check(v.moving(), "keys do not move: %+v", v)
		_, _, err := table.moveNext(s.Ctx, 0, table.indexOf(v.current), table.indexOf(v.next))
		s.OK(err)
		s.Check(follow(first.current) == v, "the index is replaced that keys move to: %+v", viewIn(table.local))
		s.OK(table.moveAll(s.Ctx, 0, v))
		for i := range keys {
			count, found, err := table.Count(s.Ctx, numbered(0, i))
			s.OK(err)
			s.Check(found && count == uint64(i), "%q is %d, %v", numbered(0, i), count, found)
		}
		s.close(table)
	})
}

// An operation ends whatever the controls contain, and changes nothing then.
func TestCorruptIndexes(t *testing.T) {
	for name, corrupt := range map[string]func(t *Table, local []uint64){
		"an index beyond the end":        func(_ *Table, local []uint64) { local[currentWord] = 1<<controlLineBits - 1 },
		"an index of too many":           func(_ *Table, local []uint64) { local[currentWord] = 31 << controlLineBits },
		"any":                            func(_ *Table, local []uint64) { local[currentWord] = 1<<64 - 1 },
		"a next index beyond the end":    func(_ *Table, local []uint64) { local[nextWord] = uint64(newControl(1<<29, 3, 1)) },
		"a next index that is the first": func(_ *Table, local []uint64) { local[nextWord] = uint64(newControl(0, 0, 1)) },
		"slots that were left":           func(t *Table, local []uint64) { local[t.indexOf(0).start] = uint64(slotMoved) },
		"closed slots":                   func(t *Table, local []uint64) { local[t.indexOf(0).start] = uint64(slotClosed) },
		"slots that were left in the next": func(t *Table, local []uint64) {
			local[nextWord] = uint64(newControl(2, 0, 1))
			local[t.indexOf(0).start] = uint64(slotClosed)
			local[t.indexOf(2).start] = uint64(slotMoved)
		},
		"spare blocks that are none": func(_ *Table, local []uint64) {
			for level := range mostLevels {
				local[blockStart+level] = 1<<64 - 1
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			alone(t, func(s *script) {
				table := s.table(Config{Slots: 8, RecordBytes: 4000})
				corrupt(table, table.local)
				s.OK(table.words.Sync())
				known := func(err error) {
					s.Check(err == nil || errors.Is(err, ErrCorrupt) || errors.Is(err, ErrFull), "the error is %v", err)
				}
				for i := range 20 {
					key := numbered(0, i)
					_, err := table.Add(s.Ctx, key, 1)
					known(err)
					_, _, err = table.Count(s.Ctx, key)
					known(err)
					_, err = table.Delete(s.Ctx, key)
					known(err)
					known(table.Put(s.Ctx, "bytes "+key, nil))
				}
				for range table.Local() {
				}
				table.Stats()
				s.OK(table.Close())
			})
		})
	}
}

// If a rank dies while it moves keys, no keys of other ranks are lost.
var movers = register("movers of which one dies", func(s *script) {
	t := s.table(Config{Slots: 8, RecordBytes: 8 << 20})
	own := func(i int) string { return numbered(s.World.Rank(), i) }
	put := 0
	next := func() error {
		for t.Owner(own(put)) == victim {
			put++
		}
		err := t.Put(s.Ctx, own(put), fmt.Append(nil, put))
		put++
		return err
	}
	const before, after, most = 200, 300, 20_000
	wait := job.Of(s.World).NewWaiter()
	defer wait.Finish()
	for turn, more := 0, after; more > 0; turn++ {
		if turn == before {
			jobtest.Signal("ready")
		}
		if len(s.World.Failures()) > 0 {
			more--
		} else if turn >= most {
			s.OK(wait.Pause(s.Ctx))
			continue
		}
		err := next()
		s.Check(err == nil || lost(err), "Put fails: %v", err)
	}
	for i := range put {
		if t.Owner(own(i)) == victim {
			continue
		}
		value, found, err := t.Get(s.Ctx, own(i))
		s.OK(err)
		s.Check(found && string(value) == fmt.Sprint(i), "%q is %q, %v", own(i), value, found)
	}
	s.closeWithoutVictim(t)
})

func TestMoversDeath(t *testing.T) {
	for range upTo(2, 8) {
		jobtest.Start(t, 3, movers).Killed(victim)
	}
}
