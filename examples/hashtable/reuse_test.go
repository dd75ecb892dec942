package hashtable

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onesided/rma/examples/internal/formtest"
	"github.com/onesided/rma/internal/jobtest"
)

// Keys get new values of all lengths, are deleted and added again, in space for a few values of each. All space is used
// again.
var forever = register("space is used again", func(s *script) {
	const keys, writers, longest = 8, 3, 100
	operations := upTo(15_000, 500_000) / fewer
	if s.World.Size() > 2 || s.remote() {
		operations = upTo(3_000, 6_000) / fewer
	}
	t := s.table(Config{Slots: 1024, RecordBytes: 256 << 10})
	failed := make([]error, writers)
	var writing sync.WaitGroup
	for writer := range writers {
		writing.Go(func() {
			failed[writer] = jobtest.Checked(func() { write(s, t, writer, keys, operations/writers, longest) })
		})
	}
	writing.Wait()
	s.OK(errors.Join(failed...))
	stats := t.Stats()
	s.Check(stats.UsedBytes <= stats.RecordBytes, "Stats are %+v", stats)
	s.close(t)
})

// write puts, deletes and adds to its own keys, and checks their values.
func write(s *script, t *Table, writer, keys, operations, longest int) {
	random := s.random(writer)
	key := func(i int) string { return fmt.Sprintf("%d/%d/%d", s.World.Rank(), writer, i) }
	values, counts := make([][]byte, keys), make([]uint64, keys)
	batch := t.NewBatch()
	for done := 0; done < operations; done += batch.Len() {
		batch.Reset()
		for i := range keys {
			switch what := random.IntN(8); {
			case what == 0:
				batch.Delete(key(i))
				values[i] = nil
			case what == 1:
				batch.Delete(key(keys + i))
				counts[i] = 0
			case what == 2:
				batch.Add(key(keys+i), 3)
				counts[i] += 3
			default:
				values[i] = sealed(random, 8+random.IntN(longest))
				batch.Put(key(i), values[i])
			}
		}
		s.OK(batch.Run(s.Ctx))
		i := random.IntN(keys)
		value, found, err := t.Get(s.Ctx, key(i))
		s.OK(err)
		s.Check(found == (values[i] != nil) && bytes.Equal(value, values[i]), "%q has %d bytes, %v, want %d", key(i), len(value), found, len(values[i]))
		count, found, err := t.Count(s.Ctx, key(keys+i))
		s.OK(err)
		s.Check(found == (counts[i] > 0) && count == counts[i], "%q is %d, %v, want %d", key(keys+i), count, found, counts[i])
	}
}

func TestForever(t *testing.T) { everywhere(t, forever) }

// Space that one rank frees can be used by another.
var given = register("space that others set free", func(s *script) {
	const keys, length = 32, 100
	t := s.table(Config{Slots: 1024, RecordBytes: 3 * keys * EntryBytes(8, length)})
	t.hash = func(key string) uint64 { return uint64(key[0]-'a')<<40 | uint64(key[1])<<20 }
	key := func(i int) string { return fmt.Sprintf("%c%c", 'a'+i/26, 'a'+i%26) }
	for turn := range upTo(12, 40) {
		// In turn each rank replaces all values. So it frees pieces that other ranks have written.
		if turn%s.World.Size() == s.World.Rank() {
			for i := range keys {
				s.OK(t.Put(s.Ctx, key(i), bytes.Repeat([]byte{byte(turn)}, length)))
			}
		}
		s.Barrier()
	}
	s.close(t)
})

func TestGiven(t *testing.T) { formtest.Run(t, [3]int{2, 3, 4}, given) }

// Operations end whatever other ranks write to the words of the free lists. A rank takes only pieces that lie within
// the record space.
func TestCorruptLists(t *testing.T) {
	const value = 40
	words := pieceWords(recordWords(false, 3, value))
	for name, corrupt := range map[string]func(t *Table, head *uint64){
		"a head beyond the end":   func(_ *Table, head *uint64) { *head = 1 << 40 },
		"a head that is no place": func(_ *Table, head *uint64) { *head = 1<<64 - 1 },
		"a node that is its next": func(t *Table, head *uint64) { *head = 41; t.local[t.recordStart()+40] = 41 },
		"a circle": func(t *Table, head *uint64) {
			*head = 1
			t.local[t.recordStart()] = 21
			t.local[t.recordStart()+20] = 1
		},
		"more places than it has": func(t *Table, head *uint64) { *head = 1; t.local[t.recordStart()] = 1<<64 - 1<<nextBits },
		"places beyond the end": func(t *Table, head *uint64) {
			*head = 1
			t.local[t.recordStart()] = 2 << nextBits
			t.local[t.recordStart()+1] = 1<<64 - 1
		},
		"announcements of nobody":   func(t *Table, _ *uint64) { t.local[announceStart+7] = 1<<64 - 1 },
		"announcements that change": func(t *Table, _ *uint64) { t.local[announceStart+7] = 77 },
		"a huge count that waits":   func(t *Table, _ *uint64) { atomic.StoreUint64(&t.local[waitingWord], 1<<64-1) },
	} {
		t.Run(name, func(t *testing.T) {
			alone(t, func(s *script) {
				table := s.table(Config{Slots: 64, RecordBytes: 8 * wordBytes * words})
				table.patience = time.Millisecond
				corrupt(table, &table.local[listStart+class(words)])
				s.OK(table.words.Sync())
				for i := range 40 {
					err := table.Put(s.Ctx, fmt.Sprintf("k%02d", i), make([]byte, value))
					s.Check(err == nil || errors.Is(err, ErrFull) || errors.Is(err, ErrCorrupt), "Put fails: %v", err)
				}
				for _, place := range table.spaces[0].pile(words).places {
					s.Check(table.holds(uint64(place), words), "a piece at %d", place)
				}
				s.OK(table.Close())
			})
		})
	}
}

// class numbers all sizes of pieces. A piece is at most a quarter longer than the record that needs it.
func TestClasses(t *testing.T) {
	last := 0
	for words := 1; words <= longestRecord; words++ {
		piece := pieceWords(words)
		number := class(piece)
		if piece < words || piece > max(words+words/4, 2) || number < last || number > last+1 || number >= classes || pieceWords(piece) != piece {
			t.Fatalf("%d words are given %d, of class %d after %d", words, piece, number, last)
		}
		last = number
	}
}
