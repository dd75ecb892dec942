package hashtable

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/onesided/rma/internal/jobtest"
)

// If a table is full, the error says what is full, and no entry is lost.
var full = register("full", func(s *script) {
	for _, config := range []Config{{Slots: 16, RecordBytes: 600}, {Slots: 1024, RecordBytes: 800}} {
		t := s.table(config)
		mine := map[string]uint64{}
		var refused int
		for i := range 200 {
			key := fmt.Sprintf("rank %d, key %d", s.World.Rank(), i)
			_, err := t.Add(s.Ctx, key, uint64(i)+1)
			if err != nil {
				s.Fails(err, ErrFull)
				s.Check(strings.Contains(err.Error(), key), "%q does not name %q", err, key)
				refused++
				_, found, err := t.Count(s.Ctx, key)
				s.OK(err)
				s.Check(!found, "%q is there though it was refused", key)
				continue
			}
			mine[key] = uint64(i) + 1
		}
		s.Check(refused > 0 && (len(mine) > 0 || s.World.Size() > 1), "%d were refused, %d taken", refused, len(mine))
		s.Barrier()
		for _, key := range slices.Sorted(maps.Keys(mine)) {
			count, found, err := t.Count(s.Ctx, key)
			s.OK(err)
			s.Check(found && count == mine[key], "%q is %d, %v, want %d", key, count, found, mine[key])
			// An existing entry needs no room.
			_, err = t.Add(s.Ctx, key, 1)
			s.OK(err)
		}
		s.close(t)
	}
})

var limits = register("limits", func(s *script) {
	t := s.table(Config{Slots: 64, RecordBytes: 1 << 20})
	key := fmt.Sprint(s.World.Rank())
	s.OK(t.Put(s.Ctx, key, nil))
	value, found, err := t.Get(s.Ctx, key)
	s.OK(err)
	s.Check(found && len(value) == 0, "an empty value is %v, %v", value, found)
	long := bytes.Repeat([]byte{7}, MaxEntryBytes-len(key))
	s.OK(t.Put(s.Ctx, key, long))
	value, _, err = t.Get(s.Ctx, key)
	s.OK(err)
	s.Check(bytes.Equal(value, long), "a long value has %d bytes, want %d", len(value), len(long))
	err = t.Put(s.Ctx, key, append(long, 8))
	s.Fails(err, ErrTooLong)
	s.Check(strings.Contains(err.Error(), fmt.Sprint(MaxEntryBytes)), "%q does not say what is allowed", err)
	value, _, err = t.Get(s.Ctx, key)
	s.OK(err)
	s.Check(bytes.Equal(value, long), "the long value has changed")
	s.Barrier()
	if s.World.Rank() == 0 {
		s.OK(t.Put(s.Ctx, "", []byte("empty key")))
	}
	s.Barrier()
	value, found, err = t.Get(s.Ctx, "")
	s.OK(err)
	s.Check(found && string(value) == "empty key", "under the empty key is %q, %v", value, found)
	s.close(t)
	s.Fails(t.Close(), ErrClosed)
	s.Fails(t.Put(s.Ctx, key, nil), ErrClosed)
	for range t.Local() {
		s.Check(false, "a closed table has entries")
	}
})

// room is the record space of a rank in entries of 100 bytes with keys of about 8 bytes.
const room = 20

// If no record space is left, a new entry fails and existing entries stay. Operations that need no record succeed.
var refused = register("refused values", func(s *script) {
	t := s.table(Config{Slots: 1024, RecordBytes: room * EntryBytes(8, 100)})
	random := s.random(5)
	key := func(i int) string { return fmt.Sprintf("%d/%6d", s.World.Rank(), i) }
	_, err := t.Add(s.Ctx, key(0), 1)
	s.Check(err == nil || errors.Is(err, ErrFull), "Add fails: %v", err)
	counted := err == nil
	const together, rounds = 4, 20
	there := map[string][]byte{}
	batch := t.NewBatch()
	for round := range rounds {
		var values [together][]byte
		first := 1 + round*together
		for i := range values {
			values[i] = sealed(random, 92)
			batch.Put(key(first+i), values[i])
		}
		err := batch.Run(s.Ctx)
		s.Check(err == nil || errors.Is(err, ErrFull), "a batch of Puts fails: %v", err)
		for i, value := range values {
			err := batch.Result(i).Err
			if err == nil {
				there[key(first+i)] = value
				continue
			}
			var full *FullError
			s.Check(errors.As(err, &full), "Put fails: %v", err)
			s.Check(full.Rank == t.Owner(key(first+i)) && !full.Slots && full.Need == EntryBytes(8, 100) && full.Capacity == t.Stats().RecordBytes, "the error says %+v", full)
			s.Check(full.Used <= full.Capacity && full.Used+full.Need > full.Capacity, "the error says %+v, which is room enough", full)
		}
		batch.Reset()
	}
	s.Check(len(there) <= room*s.World.Size(), "%d values were put where %d have room", len(there), room*s.World.Size())
	s.Barrier()
	for i := range together * rounds {
		value, found, err := t.Get(s.Ctx, key(1+i))
		s.OK(err)
		want, put := there[key(1+i)]
		s.Check(found == put && bytes.Equal(value, want), "%q has not the value that was put", key(1+i))
	}
	if counted {
		sum, err := t.Add(s.Ctx, key(0), 1)
		s.OK(err)
		s.Check(sum == 2, "the counter is %d, want 2", sum)
	}
	for i := range together * rounds {
		found, err := t.Delete(s.Ctx, key(1+i))
		s.OK(err)
		_, put := there[key(1+i)]
		s.Check(found == put, "Delete finds %q: %v", key(1+i), found)
	}
	s.Barrier()
	for k, value := range t.Local() {
		s.Check(value.Counter, "%q is there after it was deleted", k)
	}
	s.close(t)
})

// All keys have the last bucket of rank 0 as their home. They fill the slots from there on, past the end of the index.
// Their number is the number of slots that an operation searches if the index does not grow.
var slots = register("slots that a key may have", func(s *script) {
	const most = mostProbes * bucketSlots
	// In the second table all ranks together insert more keys than there can be slots for.
	for _, c := range []struct{ slots, used, keys int }{{24, 24 * s.World.Size(), 24}, {most + 8, most, (most+most/4)/s.World.Size() + 8}} {
		if c.used == most && s.World.Size() > 2 && fewer > 1 {
			// Under the race detector this takes many times as long, and two ranks test the same.
			continue
		}
		t := s.table(Config{Slots: c.slots, RecordBytes: 1 << 20})
		t.hash = func(key string) uint64 { return xxhash.Sum64String(key)&(1<<fingerprintBits-1)<<32 | (1<<32 - 1) }
		batch := t.NewBatch()
		for i := range c.keys {
			batch.Put(fmt.Sprint(s.World.Rank(), " ", i), []byte{1})
		}
		err := batch.Run(s.Ctx)
		s.Check(err == nil || errors.Is(err, ErrFull), "the batch fails: %v", err)
		taken := 0
		for i := range batch.Len() {
			if err := batch.Result(i).Err; err == nil {
				taken++
			} else {
				var full *FullError
				s.Check(errors.As(err, &full) && full.Rank == 0 && full.Slots && full.Used == most && full.Capacity >= c.slots, "the error is %v", err)
			}
		}
		sum := 0
		for _, n := range gather(s, []int{taken}) {
			sum += n
		}
		// Keys that were moved may lie further on.
		s.Check(sum >= c.used && sum <= 2*c.used, "%d keys have slots, of %d that there are for them", sum, c.used)
		stats := gather(s, []Stats{t.Stats()})
		s.Check(stats[0].Entries == sum && stats[0].Slots >= sum, "rank 0 has %+v", stats[0])
		s.close(t)
	}
})

// A rank does not know that little space is left, and allocates beyond the end. It can use the words before the end.
var end = register("the end of the record space", func(s *script) {
	const small, large = 8, 200
	capacity := 3*EntryBytes(1, large) + 2*EntryBytes(1, small)
	t := s.table(Config{Slots: 64, RecordBytes: capacity})
	t.hash = func(key string) uint64 { return uint64(key[0]) << 32 }
	if s.World.Rank() == 0 {
		for _, key := range []string{"a", "b", "c"} {
			s.OK(t.Put(s.Ctx, key, make([]byte, large)))
		}
	}
	s.Barrier()
	if s.World.Rank() == 1 {
		var full *FullError
		err := t.Put(s.Ctx, "d", make([]byte, large))
		s.Check(errors.As(err, &full) && *full == FullError{Rank: 0, Need: EntryBytes(1, large), Used: 3 * EntryBytes(1, large), Capacity: capacity}, "the error is %v", err)
		s.OK(t.Put(s.Ctx, "e", make([]byte, small)))
		s.OK(t.Put(s.Ctx, "f", make([]byte, small)))
		s.Fails(t.Put(s.Ctx, "g", nil), ErrFull)
	}
	s.Barrier()
	if s.World.Rank() == 0 {
		for range 2 {
			s.Fails(t.Put(s.Ctx, "g", nil), ErrFull)
		}
	}
	stats := gather(s, []Stats{t.Stats()})
	s.Check(stats[0].Entries == 5 && stats[0].UsedBytes == capacity && stats[0].LiveBytes == capacity, "rank 0 has %+v", stats[0])
	s.close(t)
})

func TestEndOfTheRecordSpace(t *testing.T) { jobtest.Run(t, 2, end) }

// The longest keys can have bytes or a counter.
var longest = register("longest keys", func(s *script) {
	t := s.table(Config{Slots: 64, RecordBytes: 4 * s.World.Size() * (MaxEntryBytes + 16)})
	key := strings.Repeat(fmt.Sprint(s.World.Rank()), MaxEntryBytes)
	s.OK(t.Put(s.Ctx, key, nil))
	value, found, err := t.Get(s.Ctx, key)
	s.OK(err)
	s.Check(found && len(value) == 0, "Get of a long key is %d bytes, %v", len(value), found)
	found, err = t.Delete(s.Ctx, key)
	s.OK(err)
	s.Check(found, "Delete does not find a long key")
	for range 2 {
		_, err = t.Add(s.Ctx, key, 4)
		s.OK(err)
	}
	count, found, err := t.Count(s.Ctx, key)
	s.OK(err)
	s.Check(found && count == 8, "Count of a long key is %d, %v", count, found)

	_, err = t.Add(s.Ctx, key+"k", 1)
	s.Fails(err, ErrTooLong)
	s.Check(strings.Contains(err.Error(), fmt.Sprintf("key of %d bytes and value of 0, together at most %d", MaxEntryBytes+1, MaxEntryBytes)), "the error is %q", err)
	s.Check(len(err.Error()) < 300, "the error quotes %d bytes", len(err.Error()))
	_, _, err = t.Get(s.Ctx, key+"k")
	s.Fails(err, ErrTooLong)
	s.Barrier()
	for k, value := range t.Local() {
		s.Check(value.Counter && value.Count == 8 && strings.Count(k, k[:1]) == MaxEntryBytes, "a long key is %d bytes, %d", len(k), value.Count)
	}
	s.close(t)
})

func TestLimits(t *testing.T) { everywhere(t, full, refused, slots, limits, longest) }

var configs = register("configurations", func(s *script) {
	for _, c := range []struct {
		config Config
		want   error
		says   string
	}{
		{Config{Slots: 0, RecordBytes: 100}, ErrConfig, "Slots 0 of rank 0, allowed are 1 to"},
		{Config{Slots: -5, RecordBytes: 100}, ErrConfig, "Slots -5"},
		{Config{Slots: 10, RecordBytes: 0}, ErrConfig, "RecordBytes 0 of rank 0, allowed are 8 to"},
		{Config{Slots: 10, RecordBytes: MaxRecordBytes + 1}, ErrConfig, fmt.Sprint("RecordBytes ", MaxRecordBytes+1)},
		{Config{Slots: 10, RecordBytes: 100, Clients: 1}, ErrConfig, "0 in a job of 2 ranks"},
		{Config{Slots: 10, RecordBytes: 100, Clients: -1}, ErrConfig, "Clients -1"},
		{Config{Slots: 10 + s.World.Rank(), RecordBytes: 100}, ErrMismatch, "rank 1 passed"},
	} {
		_, err := New(s.Ctx, s.World, c.config)
		s.Fails(err, c.want)
		s.Check(strings.Contains(err.Error(), c.says), "%q does not say %q", err, c.says)
	}
})

func TestConfigurations(t *testing.T) {
	t.Run(configs, func(t *testing.T) { jobtest.Run(t, 2, configs) })
}
