package hashtable

import (
	"bytes"
	"testing"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/world"
)

// A rank knows only an index that is gone, whose memory now has records. It finds keys nevertheless: it reads that
// memory, and does not use it.
var outdated = register("views of an index that is records now", func(s *script) {
	t := s.table(Config{Slots: 8, RecordBytes: 1 << 15})
	t.patience = await.Limit
	var keys []string
	made, kept := 0, []byte("kept")
	grow := func(generation uint64) {
		for ; viewIn(t.local).current.generation() < generation; made++ {
			if key := numbered(s.World.Rank(), made); t.Owner(key) == s.World.Rank() {
				s.OK(t.Put(s.Ctx, key, kept))
				keys = append(keys, key)
			}
		}
	}
	grow(3)
	was := t.indexOf(viewIn(t.local).current)
	old := make([]uint64, s.World.Size())
	s.OK(world.AllGather(s.Ctx, s.World, []uint64{uint64(viewIn(t.local).current)}, old))
	// Of two free blocks of a size, one is used for records.
	grow(4)
	t.freeBlocks(s.Ctx)
	s.Barrier()
	asked := 0
	for t.Owner(numbered(0, asked)) != 0 {
		asked++
	}
	look := func() {
		t.known[0].store(view{control(old[0]), control(old[0])})
		value, found, err := t.Get(s.Ctx, numbered(0, asked))
		s.OK(err)
		s.Check(found && bytes.Equal(value, kept), "%q is %q, %v", numbered(0, asked), value, found)
	}
	if s.World.Rank() != 0 {
		look()
	}
	// Other ranks have read the old index by now. Rank 0 does not know of that.
	s.Barrier()
	if s.World.Rank() == 0 {
		within := false
		for i := range 400 {
			s.OK(t.Put(s.Ctx, keys[i%len(keys)], kept))
			x := t.indexOf(viewIn(t.local).current)
			for _, word := range t.local[x.start:][:x.buckets*bucketSlots] {
				place := t.recordStart() + slot(word).place()
				within = within || slot(word).live() && place >= was.cursor() && place < was.cursor()+blockWords(was.buckets)
			}
		}
		s.Check(within, "no record is where the index was")
	} else {
		for range upTo(200, 1000) {
			look()
		}
	}
	s.close(t)
})

func TestOutdatedViews(t *testing.T) { everywhere(t, outdated) }
