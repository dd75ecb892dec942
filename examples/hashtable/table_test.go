package hashtable

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cespare/xxhash/v2"
)

var roomy = Config{Slots: 4096, RecordBytes: 1 << 20}

// entry is an entry of the model.
type entry struct {
	counter bool
	count   uint64
	bytes   []byte
}

// compare runs random operations on keys that only this rank uses, and applies the same operations to a map.
func compare(s *script, t *Table, part, keys, operations int) {
	random := s.random(part)
	model := map[string]entry{}
	for i := range operations {
		key := fmt.Sprintf("%d/%d", s.World.Rank(), random.IntN(keys))
		was, there := model[key]
		switch random.IntN(5) {
		case 0:
			value := bytes.Repeat([]byte{byte(i)}, random.IntN(40))
			err := t.Put(s.Ctx, key, value)
			if there && was.counter {
				s.Fails(err, ErrKind)
				continue
			}
			s.OK(err)
			model[key] = entry{bytes: value}
		case 1:
			sum, err := t.Add(s.Ctx, key, uint64(i))
			if there && !was.counter {
				s.Fails(err, ErrKind)
				continue
			}
			s.OK(err)
			s.Check(sum == was.count+uint64(i), "Add to %q gives %d, want %d", key, sum, was.count+uint64(i))
			model[key] = entry{counter: true, count: sum}
		case 2:
			found, err := t.Delete(s.Ctx, key)
			s.OK(err)
			s.Check(found == there, "Delete of %q finds it: %v, want %v", key, found, there)
			delete(model, key)
		case 3:
			value, found, err := t.Get(s.Ctx, key)
			if there && was.counter {
				s.Fails(err, ErrKind)
				continue
			}
			s.OK(err)
			s.Check(found == there && bytes.Equal(value, was.bytes), "Get of %q is %v, %v, want %v, %v", key, value, found, was.bytes, there)
		default:
			count, found, err := t.Count(s.Ctx, key)
			if there && !was.counter {
				s.Fails(err, ErrKind)
				continue
			}
			s.OK(err)
			s.Check(found == there && count == was.count, "Count of %q is %d, %v, want %d, %v", key, count, found, was.count, there)
		}
	}
	// The barriers keep the table still. Local also yields entries that other ranks have made.
	s.Barrier()
	mine := map[string]entry{}
	for key, value := range t.Local() {
		_, twice := mine[key]
		s.Check(!twice, "key %q is there twice", key)
		s.Check(t.Owner(key) == s.World.Rank(), "key %q is rank %d's", key, t.Owner(key))
		mine[key] = entry{value.Counter, value.Count, value.Bytes}
	}
	for key, want := range model {
		if t.Owner(key) != s.World.Rank() {
			continue
		}
		got, found := mine[key]
		s.Check(found && got.counter == want.counter && got.count == want.count && bytes.Equal(got.bytes, want.bytes), "entry %q is %+v, want %+v", key, got, want)
	}
	stats := t.Stats()
	s.Check(stats.Entries == len(mine), "%d entries, %d in range", stats.Entries, len(mine))
	s.Check(stats.LiveBytes <= stats.UsedBytes && stats.UsedBytes <= stats.RecordBytes, "bytes %+v", stats)
	s.Barrier()
}

var asMap = register("as a map", func(s *script) {
	t := s.table(roomy)
	compare(s, t, 1, 60, upTo(500, 1000))
	s.close(t)
})

// These keys collide in bucket and fingerprint, in the fingerprint alone, or in a part of it. They are few, because
// each operation examines many of them.
var colliding = register("as a map of colliding keys", func(s *script) {
	for part, mask := range []uint64{0, 1 << 40, 0x7fff << 32, 0xff} {
		t := s.table(roomy)
		t.hash = func(key string) uint64 { return xxhash.Sum64String(key) & mask }
		compare(s, t, part, 15, upTo(60, 120))
		s.close(t)
	}
})

func TestAsAMap(t *testing.T) { everywhere(t, asMap, colliding) }

// All ranks add to the same counters, by single operations and by batches.
var counters = register("counters of all", func(s *script) {
	const keys, turns = 37, 400
	t := s.table(roomy)
	batch := t.NewBatch()
	for i := range turns {
		key := fmt.Sprint("word", i%keys)
		if i%3 == 0 {
			_, err := t.Add(s.Ctx, key, 1)
			s.OK(err)
			continue
		}
		batch.Add(key, 1)
		if batch.Len() == 50 {
			s.OK(batch.Run(s.Ctx))
			batch.Reset()
		}
	}
	s.OK(batch.Run(s.Ctx))
	s.Barrier()
	for i := range keys {
		want := uint64(0)
		for turn := i; turn < turns; turn += keys {
			want += uint64(s.World.Size())
		}
		count, found, err := t.Count(s.Ctx, fmt.Sprint("word", i))
		s.OK(err)
		s.Check(found && count == want, "word%d is %d, want %d", i, count, want)
	}
	s.close(t)
})

// sealed returns n bytes that end with their own hash.
func sealed(random *rand.Rand, n int) []byte {
	value := make([]byte, n, n+8)
	for i := range value {
		value[i] = byte(random.Uint32())
	}
	return binary.NativeEndian.AppendUint64(value, xxhash.Sum64(value))
}

func isSealed(value []byte) bool {
	n := len(value) - 8
	return n >= 0 && xxhash.Sum64(value[:n]) == binary.NativeEndian.Uint64(value[n:])
}

// All ranks put, get and delete values of one key. Each value that is read is one that was put, whole.
var whole = register("values are whole", func(s *script) {
	t := s.table(Config{Slots: 64, RecordBytes: 4 << 20})
	random := s.random(3)
	for i := range 600 {
		key := fmt.Sprint("key", random.IntN(3))
		switch {
		case i%4 == s.World.Rank()%4:
			s.OK(t.Put(s.Ctx, key, sealed(random, random.IntN(300))))
		case i%50 == 49:
			_, err := t.Delete(s.Ctx, key)
			s.OK(err)
		default:
			value, found, err := t.Get(s.Ctx, key)
			s.OK(err)
			s.Check(!found || isSealed(value), "read a value of %d bytes that nobody put", len(value))
		}
	}
	s.Barrier()
	seen := map[string]bool{}
	for key, value := range t.Local() {
		s.Check(!seen[key] && isSealed(value.Bytes), "entry %q of %d bytes", key, len(value.Bytes))
		seen[key] = true
	}
	s.close(t)
})

// All ranks insert one key at once. One of them makes the entry, and the key has one slot.
var races = register("racing inserts", func(s *script) {
	for round := range upTo(10, 20) {
		t := s.table(Config{Slots: 16, RecordBytes: 4096})
		if round%2 == 0 {
			t.hash = func(string) uint64 { return 7 }
		}
		keys := []string{"a", "b", "c", "d", "e"}
		s.random(round).Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		s.Barrier()
		for _, key := range keys {
			_, err := t.Add(s.Ctx, key, 1)
			s.OK(err)
		}
		s.Barrier()
		seen := map[string]uint64{}
		for key, value := range t.Local() {
			_, twice := seen[key]
			s.Check(!twice, "key %q is there twice", key)
			seen[key] = value.Count
		}
		for key, count := range seen {
			s.Check(count == uint64(s.World.Size()), "key %q has %d, want %d", key, count, s.World.Size())
		}
		s.close(t)
	}
})

func TestTogether(t *testing.T) { everywhere(t, counters, whole, races) }
