package hashtable

import (
	"errors"
	"fmt"
	"testing"
)

// Combined operations have the same results as if they had been carried out one after the other.
func TestCombine(t *testing.T) {
	apart(t, roomy, func(s *script, t *Table, keys []string) {
		batch := t.NewBatch()
		want := func(of string, i int, found bool, value string, count uint64) {
			r := batch.Result(i)
			s.Check(r.Err == nil && r.Found == found && string(r.Value) == value && r.Count == count, "%s %d is %+v", of, i, r)
		}
		texts, sums := keys[0], keys[1]
		for i := range 5 {
			batch.Put(texts, []byte(fmt.Sprint("value ", i)))
			batch.Add(sums, uint64(i))
		}
		s.OK(batch.Run(s.Ctx))
		for i, sum := range []uint64{0, 1, 3, 6, 10} {
			want("Put", 2*i, i > 0, "", 0)
			want("Add", 2*i+1, i > 0, "", sum)
		}
		// Operations of a later Run do not follow these.
		first := batch.Len()
		for range 3 {
			batch.Get(texts)
			batch.Count(sums)
			batch.Get(keys[2])
		}
		s.OK(batch.Run(s.Ctx))
		for i := first; i < batch.Len(); i += 3 {
			want("Get", i, true, "value 4", 0)
			want("Count", i+1, true, "", 10)
			want("Get of nothing", i+2, false, "", 0)
		}
		batch.Reset()
		for range 3 {
			batch.Add(sums, 100)
			batch.Delete(texts)
		}
		s.OK(batch.Run(s.Ctx))
		for i, sum := range []uint64{110, 210, 310} {
			want("Add", 2*i, true, "", sum)
			want("Delete", 2*i+1, i == 0, "", 0)
		}
		batch.Reset()
		for range 3 {
			batch.Put(sums, nil)
		}
		s.Fails(batch.Run(s.Ctx), ErrKind)
		for i := range 3 {
			s.Fails(batch.Result(i).Err, ErrKind)
		}
		combined := t.Stats().Combined
		s.Check(combined == 4+4+2+2+2+2+2+2, "%d operations were combined", combined)
	})
}

// Keys with equal hashes stay apart, even if there are more of them than leaders are compared.
func TestCombineCollisions(t *testing.T) {
	apart(t, roomy, func(s *script, t *Table, keys []string) {
		hash := t.hash
		t.hash = func(key string) uint64 { return hash(key) &^ (1<<32 - 1) }
		batch := t.NewBatch()
		for range 2 {
			for _, key := range keys {
				batch.Put(key, []byte(key))
			}
		}
		s.OK(batch.Run(s.Ctx))
		combined := t.Stats().Combined
		s.Check(combined == mostTries, "%d operations of %d keys were combined", combined, len(keys))
		batch.Reset()
		for range 2 {
			for _, key := range keys {
				batch.Get(key)
			}
		}
		s.OK(batch.Run(s.Ctx))
		for i := range batch.Len() {
			value := string(batch.Result(i).Value)
			s.Check(value == keys[i%len(keys)], "%q has the value %q", keys[i%len(keys)], value)
		}
	})
}

// If there is no space for a leader, its followers fail too. If space is found for the leader, they succeed.
func TestCombineWithoutRoom(t *testing.T) {
	value := make([]byte, 1000)
	entry := EntryBytes(len("key 10"), len(value))
	apart(t, Config{Slots: 64, RecordBytes: 2 * entry}, func(s *script, t *Table, keys []string) {
		batch := t.NewBatch()
		keys = keys[:10]
		for range 3 {
			for _, key := range keys {
				batch.Put(key, value)
			}
		}
		var full *FullError
		s.Check(errors.As(batch.Run(s.Ctx), &full), "there is room for all")
		there := 0
		for i := range keys {
			failed := batch.Result(i).Err != nil
			if !failed {
				there++
			}
			for again := i + len(keys); again < batch.Len(); again += len(keys) {
				r := batch.Result(again)
				s.Check((r.Err != nil) == failed && r.Found != failed, "Put %d is %+v, its leader %+v", again, r, batch.Result(i))
			}
		}
		s.Check(there == 2, "there are %d entries", there)
	})
	for _, order := range [][2]int{{5, 2000}, {2000, 5}} {
		apart(t, Config{Slots: 64, RecordBytes: 256}, func(s *script, t *Table, keys []string) {
			// There is space for the short value only, whether it is queued first or last.
			batch := t.NewBatch()
			for _, length := range order {
				batch.Put(keys[0], make([]byte, length))
			}
			s.Check(errors.As(batch.Run(s.Ctx), new(*FullError)), "there is room for both")
			for i, length := range order {
				r := batch.Result(i)
				s.Check((r.Err == nil) == (length == 5), "a Put of %d bytes is %+v", length, r)
			}
		})
	}
	apart(t, Config{Slots: 64, RecordBytes: 2 * entry}, func(s *script, t *Table, keys []string) {
		// The space of the replaced value stays in a retire list until the announcements are read again.
		word, err := t.enter(s.Ctx, 0)
		s.OK(err)
		for range 2 {
			s.OK(t.Put(s.Ctx, keys[0], value))
		}
		t.leave(word)
		batch := t.NewBatch()
		for range 2 {
			batch.Put(keys[1], value)
		}
		s.OK(batch.Run(s.Ctx))
		s.Check(!batch.Result(0).Found && batch.Result(1).Found, "results are %+v, %+v", batch.Result(0), batch.Result(1))
		s.Check(t.Stats().Refills > 0, "there was room before")
	})
}
