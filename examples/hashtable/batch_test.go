package hashtable

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/world"
)

// Operations of a batch that can be carried out are carried out. Each has its own result under its number, and the
// error of Run is that of the first operation that failed.
var results = register("results of a batch", func(s *script) {
	t := s.table(roomy)
	key := func(name string) string { return fmt.Sprint(s.World.Rank(), name) }
	batch := t.NewBatch()
	s.Check(batch.Put(key("bytes"), []byte("b")) == 0 && batch.Add(key("count"), 5) == 1, "operations are numbered from 0")
	s.Check(batch.Len() == 2, "a batch of 2 has %d", batch.Len())
	s.OK(batch.Run(s.Ctx))
	s.Check(!batch.Result(0).Found && batch.Result(1).Count == 5, "results are %+v, %+v", batch.Result(0), batch.Result(1))

	cases := []struct {
		number int
		want   Result
		fails  error
	}{
		{batch.Get(key("bytes")), Result{Found: true, Value: []byte("b")}, nil},
		{batch.Get(key("count")), Result{}, ErrKind},
		{batch.Count(key("bytes")), Result{}, ErrKind},
		{batch.Count(key("count")), Result{Found: true, Count: 5}, nil},
		{batch.Add(key("bytes"), 1), Result{}, ErrKind},
		{batch.Put(key("count"), nil), Result{}, ErrKind},
		{batch.Put(key("long"), make([]byte, MaxEntryBytes)), Result{}, ErrTooLong},
		{batch.Get(key("none")), Result{}, nil},
		{batch.Count(key("none")), Result{}, nil},
		{batch.Delete(key("none")), Result{}, nil},
		{batch.Get(key("bytes")), Result{Found: true, Value: []byte("b")}, nil},
	}
	err := batch.Run(s.Ctx)
	var first *OpError
	s.Check(errors.As(err, &first), "the error is %v", err)
	s.Check(first.Op == "Get" && first.Key == key("count") && first.Rank == t.Owner(first.Key), "the error is %v", err)
	for i, c := range cases {
		got := batch.Result(c.number)
		s.Check(c.number == i+2, "operation %d has number %d", i+2, c.number)
		s.Check(errors.Is(got.Err, c.fails), "operation %d: error %v, want %v", c.number, got.Err, c.fails)
		s.Check(got.Found == c.want.Found && got.Count == c.want.Count && bytes.Equal(got.Value, c.want.Value), "operation %d is %+v, want %+v", c.number, got, c.want)
	}
	s.OK(batch.Run(s.Ctx))
	batch.Reset()
	s.Check(batch.Len() == 0, "a batch that was reset has %d operations", batch.Len())
	batch.Delete(key("bytes"))
	batch.Delete(key("count"))
	s.OK(batch.Run(s.Ctx))
	s.Check(batch.Result(0).Found && batch.Result(1).Found, "Delete does not find what was there")
	s.close(t)
	batch.Get("key")
	s.Fails(batch.Run(s.Ctx), ErrClosed)
})

// A batch has more operations on one key than one round completes. They take effect one after the other.
var crowded = register("a batch on one key", func(s *script) {
	t := s.table(roomy)
	batch := t.NewBatch()
	const n = 200
	for range n {
		batch.Add("key", 1)
	}
	s.OK(batch.Run(s.Ctx))
	seen := map[uint64]bool{}
	for i := range n {
		r := batch.Result(i)
		s.Check(!seen[r.Count] && r.Count >= 1, "sum %d comes twice", r.Count)
		seen[r.Count] = true
	}
	s.Barrier()
	count, _, err := t.Count(s.Ctx, "key")
	s.OK(err)
	s.Check(count == uint64(n*s.World.Size()), "the sum is %d, want %d", count, n*s.World.Size())
	s.close(t)
})

// All Puts of one batch to an existing key find the entry, and the entry keeps one of their values.
var overwritten = register("a batch of values for one key", func(s *script) {
	t := s.table(roomy)
	if s.World.Rank() == 0 {
		s.OK(t.Put(s.Ctx, "key", []byte("first")))
	}
	s.Barrier()
	batch := t.NewBatch()
	const n = 100
	for i := range n {
		batch.Put("key", fmt.Appendf(nil, "%d of rank %d", i, s.World.Rank()))
	}
	s.OK(batch.Run(s.Ctx))
	for i := range n {
		s.Check(batch.Result(i).Found, "Put %d does not find the entry", i)
	}
	s.Barrier()
	value, _, err := t.Get(s.Ctx, "key")
	s.OK(err)
	var i, rank int
	_, err = fmt.Sscanf(string(value), "%d of rank %d", &i, &rank)
	s.Check(err == nil && i < n && rank < s.World.Size(), "the value is %q", value)
	s.close(t)
})

// Records that were not published are used for the next entries of that length.
var again = register("lost records are used again", func(s *script) {
	t := s.table(roomy)
	t.combines = false
	const n = 50
	batch := t.NewBatch()
	for range n {
		batch.Add(fmt.Sprintf("%d key %4d", s.World.Rank(), 0), 1)
	}
	s.OK(batch.Run(s.Ctx))
	owner := t.Owner(fmt.Sprintf("%d key %4d", s.World.Rank(), 0))
	s.Barrier()
	before := gather(s, []Stats{t.Stats()})
	s.Barrier()
	lost := int(t.spaces[owner].idle.Load()) * wordBytes / CounterBytes(len(batch.ops[0].key))
	s.Check(lost > 0, "none of %d Adds of a new key has lost its record", n)
	for i, left := 1, lost; left > 0; i++ {
		if key := fmt.Sprintf("%d key %4d", s.World.Rank(), i); t.Owner(key) == owner {
			_, err := t.Add(s.Ctx, key, 1)
			s.OK(err)
			left--
		}
	}
	s.Barrier()
	after := gather(s, []Stats{t.Stats()})
	for rank := range after {
		s.Check(after[rank].UsedBytes == before[rank].UsedBytes, "rank %d uses %d bytes, before it was %d", rank, after[rank].UsedBytes, before[rank].UsedBytes)
	}
	s.Check(before[owner].LiveBytes < before[owner].UsedBytes && after[owner].LiveBytes == after[owner].UsedBytes, "before %+v, after %+v", before[owner], after[owner])
	s.close(t)
})

func TestBatches(t *testing.T) { everywhere(t, results, crowded, overwritten, again) }

// A batch whose context has ended begins only its first part. The operations of the other parts issue nothing, and have
// the cause of the context as their error.
func TestBatchOfContextThatHasEnded(t *testing.T) {
	cause := errors.New("enough")
	require.NoError(t, world.Run(t.Context(), 2, scripted(func(s *script) {
		t := s.table(roomy)
		t.part = 1
		batch := t.NewBatch()
		const n = 100
		for i := 0; batch.Len() < n; i++ {
			if key := fmt.Sprint(i); t.Owner(key) != s.World.Rank() {
				batch.Get(key)
			}
		}
		ended, end := context.WithCancelCause(s.Ctx)
		end(cause)
		before := t.words.Stats()
		s.Fails(batch.Run(ended), cause)
		for i := 1; i < n; i++ {
			s.Fails(batch.Result(i).Err, cause)
		}
		s.close(t)
		after := t.words.Stats()
		asked := after.Direct.Fetches + after.Packed.Fetches - before.Direct.Fetches - before.Packed.Fetches
		s.Check(asked < n/2, "%d times something was asked for, for 1 of %d Gets", asked, n)
	}), jobtest.OptionsApart()...))
}

// A batch carries out operations on mapped memory while it waits for other owners. It carries out each of them once,
// even if it stops waiting because the context has ended.
func TestMappedWhileWaiting(t *testing.T) {
	apart(t, Config{Slots: 4096, RecordBytes: 1 << 20}, func(s *script, t *Table, _ []string) {
		const n = 2000
		mine := 0
		run := func(ctx context.Context, batch *Batch) error {
			mine = 0
			for i := range n {
				key := fmt.Sprint(i)
				if batch.Add(key, 1); t.Owner(key) == s.World.Rank() {
					mine++
				}
			}
			return batch.Run(ctx)
		}
		batch := t.NewBatch()
		for want := range uint64(3) {
			batch.Reset()
			s.OK(run(s.Ctx, batch))
			for i := range n {
				r := batch.Result(i)
				s.Check(r.Count == want+1 && r.Found == (want > 0), "Add %d of key %d is %+v", want, i, r)
			}
		}
		s.Check(mine > 4*directGroup*directGroups && n-mine > 4*directGroup, "%d of %d keys are this rank's", mine, n)
		batch.Reset()
		ended, end := context.WithCancel(s.Ctx)
		end()
		s.Fails(run(ended, batch), context.Canceled)
		for i := range n {
			if r, key := batch.Result(i), fmt.Sprint(i); t.Owner(key) == s.World.Rank() {
				s.Check(r.Err == nil && r.Count == 4, "Add of key %d is %+v", i, r)
				count, _, err := t.Count(s.Ctx, key)
				s.Check(count == 4 && err == nil, "key %d has the count %d, %v", i, count, err)
			}
		}
	})
}
