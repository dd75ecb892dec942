package hashtable

import (
	"context"
	"runtime"
	"sync"
	"testing"

	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/window"
)

// ready begins the operations of a batch as Run does, for a test that carries out the rounds itself.
func (b *Batch) ready() {
	for i := range b.ops {
		b.ops[i].home = b.table.home(b.ops[i].key)
		b.active = append(b.active, int32(i))
	}
	b.runs++
	b.split()
}

// finish carries out the remaining rounds of a lane.
func (s *script) finish(b *Batch, lane int) {
	for len(b.lanes[lane].active) > 0 {
		b.endRound(s.Ctx, &b.lanes[lane])
		b.beginRound(s.Ctx, lane)
	}
}

// spareView returns a view of an owner whose current index is the spare block of the first size. That index has no
// keys.
func (t *Table) spareView() view {
	c := newControl(blockWords(t.buckets)/lineWords, 0, 0)
	return view{c, c}
}

// If reading a view fails, the values from the read before it are not used. The next operation of the round reads the
// view.
func TestRefusedView(t *testing.T) {
	apart(t, roomy, func(s *script, t *Table, elsewhere []string) {
		const owner = 1
		keys := elsewhere[:2]
		for _, key := range keys {
			s.OK(t.Put(s.Ctx, key, []byte(key)))
		}
		batch := t.NewBatch()
		for _, key := range keys {
			batch.Get(key)
		}
		batch.ready()
		lane, was := &batch.lanes[0], t.spareView()
		lane.views[owner].words = &[2]uint64{uint64(was.current), uint64(was.next)}
		batch.load(s.Ctx, 0)
		refused, other := &batch.ops[0], &batch.ops[1]
		s.OK(t.words.UnlockAll(s.Ctx))
		err := batch.issue(lane, refused)
		s.Check(err != nil, "a window without an epoch has been read")
		refused.lose(batch, err)
		s.OK(t.words.LockAll(s.Ctx, window.NoCheck))
		s.OK(batch.issue(lane, other))
		batch.flush(lane, owner)
		s.finish(batch, 0)
		s.Check(other.found && other.err == nil && t.known[owner].load() == view{}, "%q is %v, %v, by the view %+v", other.key, other.found, other.err, t.known[owner].load())
	})
}

// A view that was read in a failed round is not used. The next part of the batch reads it again, into other memory.
func TestFailedRound(t *testing.T) {
	apart(t, roomy, func(s *script, t *Table, elsewhere []string) {
		const owner = 1
		t.part = 1
		for _, key := range elsewhere[:2] {
			s.OK(t.Put(s.Ctx, key, nil))
		}
		batch := t.NewBatch()
		for _, key := range elsewhere[:2] {
			batch.Put(key, []byte(key))
		}
		batch.ready()
		t.known[owner].store(t.spareView())
		batch.beginRound(s.Ctx, 0)
		lane := &batch.lanes[0]
		asked, tail := lane.views[owner].words, lane.owners[owner].tail
		batch.flushed(lane, owner, verbs.ErrShortage)
		batch.endRound(s.Ctx, lane)
		failed, next := &batch.ops[0], &batch.ops[1]
		s.Fails(failed.err, verbs.ErrShortage)
		batch.beginRound(s.Ctx, 0)
		s.Check(lane.views[owner].words != asked && lane.owners[owner].tail != tail, "the round before may yet write what this one reads")
		s.finish(batch, 0)
		s.Check(next.found && next.err == nil, "%q is %v, %v", next.key, next.found, next.err)
	})
}

// Words that a Flush has not completed are not read, which the race detector checks. An error comes without a value.
func TestWordOfFailedFlush(t *testing.T) {
	apart(t, roomy, func(s *script, t *Table, elsewhere []string) {
		const owner = 1
		s.OK(t.Put(s.Ctx, elsewhere[0], nil))
		from, to := t.indexOf(view{}.current), t.indexOf(t.spareView().current)
		// Other ranks have claimed all parts of the index.
		s.OK(t.words.Accumulate(window.Sum, []uint64{1 << 32}, owner, to.cursor()))
		s.OK(t.words.Flush(s.Ctx, owner))
		flushing, over := context.WithCancel(s.Ctx)
		var others sync.WaitGroup
		defer others.Wait()
		defer over()
		others.Go(func() {
			for flushing.Err() == nil {
				_ = t.words.Flush(s.Ctx, owner)
				runtime.Gosched()
			}
		})
		ended, end := context.WithCancel(s.Ctx)
		end()
		for name, word := range map[string]func() (uint64, error){
			"loadWord": func() (uint64, error) { return t.loadWord(ended, owner, tailWord) },
			"swapWord": func() (uint64, error) { return t.swapWord(ended, owner, tailWord, 0, 0) },
			"moveNext": func() (uint64, error) {
				claimed, _, err := t.moveNext(ended, owner, from, to)
				return uint64(claimed), err
			},
		} {
			for range 1000 {
				got, err := word()
				s.Check((got == 0) == (err != nil), "%s gives %d, %v", name, got, err)
			}
		}
	})
}

// Operations that are queued after a failed Run get new memory, because the window may still write to the old memory.
// The earlier results stay.
func TestRunAfterFailedRun(t *testing.T) {
	apart(t, roomy, func(s *script, t *Table, elsewhere []string) {
		for _, key := range elsewhere {
			s.OK(t.Put(s.Ctx, key, []byte(key)))
		}
		batch := t.NewBatch()
		check := func(from int) {
			for i, key := range elsewhere {
				r := batch.Result(from + i)
				s.Check(r.Err == nil && r.Found && string(r.Value) == key, "%q is %+v", key, r)
			}
		}
		get := func() (first int) {
			first = batch.Len()
			for _, key := range elsewhere {
				batch.Get(key)
			}
			return first
		}
		get()
		s.OK(batch.Run(s.Ctx))

		refused := get()
		op, lane, chunk := &batch.ops[refused], &batch.lanes[0].owners[0], &batch.memory.chunk[0]
		s.OK(t.words.UnlockAll(s.Ctx))
		s.Check(batch.Run(s.Ctx) != nil, "a window without an epoch has been read")
		s.OK(t.words.LockAll(s.Ctx, window.NoCheck))
		after := get()
		s.OK(batch.Run(s.Ctx))
		check(0)
		for i := refused; i < after; i++ {
			s.Check(batch.Result(i).Err != nil, "operation %d, which was refused, is %+v", i, batch.Result(i))
		}
		check(after)
		s.Check(&batch.ops[refused] != op && &batch.lanes[0].owners[0] != lane && &batch.memory.chunk[0] != chunk, "memory that the window may yet write is used")

		ended, end := context.WithCancel(s.Ctx)
		end()
		for range 100 {
			batch.Reset()
			get()
			_ = batch.Run(ended)
			after := get()
			s.OK(batch.Run(s.Ctx))
			check(after)
		}
	})
}
