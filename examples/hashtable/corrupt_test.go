package hashtable

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/onesided/rma/window"
)

// An operation ends whatever the window contains. It returns ErrCorrupt for contents that no table writes.
func TestCorruptContents(t *testing.T) {
	const key, other = "key", "other key"
	const place = 50
	config := Config{Slots: 8, RecordBytes: 800}
	whole := recordWords(false, len(key), 8)
	for _, c := range []struct {
		name string
		slot func(fingerprint slot) slot
		// lengths are the lengths of key and value in the record.
		lengths [2]uint32
	}{
		{"a slot that is not taken", func(f slot) slot { return newSlot(f, false, place, whole) &^ slotTaken }, [2]uint32{3, 8}},
		{"a record of no words", func(f slot) slot { return newSlot(f, false, place, 0) }, [2]uint32{3, 8}},
		{"a counter's record of one word", func(f slot) slot { return newSlot(f, true, place, 1) }, [2]uint32{3, 8}},
		{"a record beyond the end", func(f slot) slot { return newSlot(f, false, 100-whole+1, whole) }, [2]uint32{3, 8}},
		{"a record far beyond the end", func(f slot) slot { return newSlot(f, false, 1<<placeBits-1, whole) }, [2]uint32{3, 8}},
		{"a key longer than the record", func(f slot) slot { return newSlot(f, false, place, whole) }, [2]uint32{1 << 31, 8}},
		{"a value longer than the record", func(f slot) slot { return newSlot(f, false, place, whole) }, [2]uint32{3, 1<<32 - 1}},
		{"a counter with a value", func(f slot) slot { return newSlot(f, true, place, whole+1) }, [2]uint32{3, 8}},
	} {
		t.Run(c.name, func(t *testing.T) {
			alone(t, func(s *script) {
				table := s.table(config)
				s.OK(table.Put(s.Ctx, other, []byte("value")))
				home := table.home(key)
				set := c.slot(home.fingerprint)
				// The other key has the first slot of the only bucket.
				table.words.Local()[table.indexOf(0).start+1] = uint64(set)
				record := table.bytes.Local()[(table.recordStart()+place)*wordBytes+set.prefix():]
				binary.NativeEndian.PutUint32(record, c.lengths[0])
				binary.NativeEndian.PutUint32(record[4:], c.lengths[1])
				s.OK(table.words.Sync())

				_, _, err := table.Get(s.Ctx, key)
				s.Fails(err, ErrCorrupt)
				_, _, err = table.Count(s.Ctx, key)
				s.Fails(err, ErrCorrupt)
				s.Fails(table.Put(s.Ctx, key, nil), ErrCorrupt)
				_, err = table.Add(s.Ctx, key, 1)
				s.Fails(err, ErrCorrupt)
				_, err = table.Delete(s.Ctx, key)
				s.Fails(err, ErrCorrupt)

				for k, value := range table.Local() {
					s.Check(k == other && string(value.Bytes) == "value", "entry %q, %v", k, value)
				}
				s.Check(table.Stats().Entries >= 1, "Stats are %+v", table.Stats())
				value, _, err := table.Get(s.Ctx, other)
				s.OK(err)
				s.Check(string(value) == "value", "the other key has %q", value)
				s.OK(table.Close())
			})
		})
	}
}

// A count of allocated words beyond the end of the record space is a table without room.
func TestCorruptTail(t *testing.T) {
	for _, tail := range []uint64{101, 1 << 40, 1 << 63, 1<<64 - 1} {
		t.Run(fmt.Sprint(tail), func(t *testing.T) {
			alone(t, func(s *script) {
				table := s.table(Config{Slots: 8, RecordBytes: 800})
				var was uint64
				s.OK(table.words.FetchAndOp(window.Replace, tail, &was, 0, tailWord))
				s.OK(table.words.Flush(s.Ctx, 0))
				for range 2 {
					err := table.Put(s.Ctx, "key", nil)
					var full *FullError
					s.Check(errors.As(err, &full) && full.Used == 800 && full.Capacity == 800, "error is %v", err)
				}
				s.OK(table.Close())
			})
		})
	}
}
