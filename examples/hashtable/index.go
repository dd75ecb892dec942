package hashtable

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/onesided/rma/window"
)

// A rank has one index, an array of buckets, and a next one while its keys move. Each is in a block. A block is a
// line and then the buckets; word 0 of the line counts the parts that ranks have begun to move into the index.

// A control is a word that names an index:
//
//	bits 0-29   the block's offset, in lines after the header
//	bits 30-34  the level: how many times the first index's number of buckets was doubled
//	bits 35-63  the generation: number of indexes before this one
//
// The control of the first index is 0. A next index exists if its generation follows that of the current one.
type control uint64

const (
	controlLineBits  = 30
	controlLevelBits = 5
	generationShift  = controlLineBits + controlLevelBits
	generationBits   = 64 - generationShift
	// mostLevels is the number of levels that a control can express. An owner keeps a spare block of each.
	mostLevels = 1 << controlLevelBits
)

func newControl(line, level int, generation uint64) control {
	return control(line) | control(level)<<controlLineBits | control(generation)<<generationShift
}

func (c control) line() int          { return int(c & (1<<controlLineBits - 1)) }
func (c control) level() int         { return int(c>>controlLineBits) & (mostLevels - 1) }
func (c control) generation() uint64 { return uint64(c >> generationShift) }

// following returns the generation after c's.
func (c control) following() uint64 { return (c.generation() + 1) & (1<<generationBits - 1) }

// A view is the controls of a rank's current and next index, as one reader knows them.
type view struct{ current, next control }

// moving reports whether keys move to the next index.
func (v view) moving() bool { return v.next.generation() == v.current.following() }

// An index locates the buckets of an index in the window.
type index struct {
	// start is the displacement of the first bucket, in words.
	start   int
	buckets int
}

// indexOf returns the index that a control names. It has no buckets if no table has an index there.
func (t *Table) indexOf(c control) index {
	buckets := t.buckets << c.level()
	start := headerWords + c.line()*lineWords + lineWords
	if buckets > mostBuckets || start+buckets*bucketSlots > t.recordStart()+t.recordWords {
		return index{}
	}
	return index{start, buckets}
}

// blockWords returns the number of words of an index with this number of buckets.
func blockWords(buckets int) int { return lineWords + buckets*bucketSlots }

// cursor returns the displacement of the word that counts the parts that have begun to move here.
func (x index) cursor() int { return x.start - lineWords }

// bucket returns the home bucket of a key with this hash.
func (x index) bucket(low uint32) int { return int(uint64(low) * uint64(x.buckets) >> 32) }

// place returns the displacement of a slot in the bucket that is after buckets after another one.
func (x index) place(bucket, after, slot int) int {
	n := bucket + after
	if n >= x.buckets {
		n -= x.buckets
	}
	return x.start + n*bucketSlots + slot
}

// viewIn returns the view of a rank whose memory is mapped.
func viewIn(words []uint64) view {
	return view{control(atomic.LoadUint64(&words[currentWord])), control(atomic.LoadUint64(&words[nextWord]))}
}

// readView reads a rank's controls. The caller must be announced while it uses them.
func (t *Table) readView(ctx context.Context, owner int) (v view, err error) {
	if memory, ok := t.words.Mapped(owner); ok {
		v = viewIn(memory)
	} else {
		var words [2]uint64
		if err = t.words.GetAccumulate(window.NoOp, nil, words[:], owner, currentWord); err == nil {
			err = t.words.Flush(ctx, owner)
		}
		if err != nil {
			return view{}, err
		}
		v = view{control(words[0]), control(words[1])}
	}
	if !t.valid(v) {
		return view{}, t.strangeView(owner, v)
	}
	return v, nil
}

// valid reports whether a table may have such indexes.
func (t *Table) valid(v view) bool {
	return t.indexOf(v.current).buckets > 0 && (!v.moving() || t.indexOf(v.next).buckets > 0)
}

func (t *Table) strangeView(owner int, v view) error {
	return fmt.Errorf("%w: rank %d has its index at %#x, the next at %#x", ErrCorrupt, owner, uint64(v.current), uint64(v.next))
}

// A runView is what a lane knows of a rank's indexes.
type runView struct {
	view
	// run is the number of the carryOut that read the view, or 0 if it must be read again. asked is set while it is
	// being read into words.
	run   uint64
	asked bool
	words *[2]uint64
}

// locate makes the operation begin in its owner's current index as the lane knows it. The round reads the view again
// along with the first bucket: an index that was current after the announcement is not reused meanwhile.
func (b *Batch) locate(op *operation) error {
	if op.at.buckets > 0 {
		return nil
	}
	t, owner := b.table, op.home.owner
	v := b.viewOf(op)
	if v.run != b.runs {
		known := t.known[owner].load()
		if v.words == nil {
			v.words = new([2]uint64)
		}
		if err := t.words.GetAccumulate(window.NoOp, nil, v.words[:], owner, currentWord); err != nil {
			// The read may be queued in spite of the error.
			v.words = nil
			return err
		}
		v.run, v.view, v.asked = b.runs, known, true
	}
	op.view = v.view
	op.at = t.indexOf(op.view.current)
	return nil
}

// settleViews takes over the views that the round has read. The next round that needs one of the others reads it
// again.
func (b *Batch) settleViews(l *lane) {
	t := b.table
	for _, rank := range l.touched {
		v, o := &l.views[rank], &l.owners[rank]
		if !v.asked {
			continue
		}
		v.asked = false
		if o.err != nil {
			// The window may still write the words.
			v.run, v.words = 0, nil
			continue
		}
		read := view{control(v.words[0]), control(v.words[1])}
		if read == v.view {
			continue
		}
		if !t.valid(read) {
			v.run, o.err = 0, t.strangeView(int(rank), read)
			continue
		}
		v.view = read
		t.known[rank].store(read)
	}
}

// outdated reports whether the operation has looked at an index that is no longer current. If so it gives the
// operation the view that is known now.
func (b *Batch) outdated(op *operation) bool {
	if op.step != stepBucket || op.next {
		return false
	}
	v := b.viewOf(op)
	if op.view.current != v.current {
		return true
	}
	op.view = v.view
	return false
}

// locateIn is like locate, for an owner whose memory is mapped.
func (b *Batch) locateIn(op *operation, m *shared) {
	if op.at.buckets > 0 {
		return
	}
	op.view = viewIn(m.words)
	if op.at = b.table.indexOf(op.view.current); !b.table.valid(op.view) {
		op.fail(b, b.table.strangeView(op.home.owner, op.view))
	}
}

func (k *knownView) load() view { return view{control(k.current.Load()), control(k.next.Load())} }

func (k *knownView) store(v view) {
	k.current.Store(uint64(v.current))
	k.next.Store(uint64(v.next))
}
