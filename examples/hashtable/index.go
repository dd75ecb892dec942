package hashtable

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/onesided/rma/window"
)

// An index is a rank's array of buckets. A rank has one, and while its keys move to another, a next one,
// each in a block: a line of which word 0 counts the parts that somebody has begun to move into it, and then
// the buckets.

// A control is a word that names an index:
//
//	bits 0-29   the block's place, in lines after the header
//	bits 30-34  the level: how many times the first index's buckets were doubled
//	bits 35-63  the generation: how many indexes there were before
//
// That of the first index is 0. The next index is one if its generation follows the current one's.
type control uint64

const (
	controlLineBits  = 30
	controlLevelBits = 5
	generationShift  = controlLineBits + controlLevelBits
	generationBits   = 64 - generationShift
	// mostLevels are so many that a control can say, and spare blocks are kept of.
	mostLevels = 1 << controlLevelBits
)

func newControl(line, level int, generation uint64) control {
	return control(line) | control(level)<<controlLineBits | control(generation)<<generationShift
}

func (c control) line() int          { return int(c & (1<<controlLineBits - 1)) }
func (c control) level() int         { return int(c>>controlLineBits) & (mostLevels - 1) }
func (c control) generation() uint64 { return uint64(c >> generationShift) }

// following is the generation after c's.
func (c control) following() uint64 { return (c.generation() + 1) & (1<<generationBits - 1) }

// A view is what somebody knows of a rank's indexes: controls of the current and of the next one.
type view struct{ current, next control }

// moving tells whether keys move to the next index.
func (v view) moving() bool { return v.next.generation() == v.current.following() }

// An index as operations use it.
type index struct {
	// start is the displacement of its first bucket, in words.
	start   int
	buckets int
}

// indexOf is the index that a control names, and none if no table has one there.
func (t *Table) indexOf(c control) index {
	buckets := t.buckets << c.level()
	start := headerWords + c.line()*lineWords + lineWords
	if buckets > mostBuckets || start+buckets*bucketSlots > t.recordStart()+t.recordWords {
		return index{}
	}
	return index{start, buckets}
}

// blockWords is how many words an index of so many buckets takes.
func blockWords(buckets int) int { return lineWords + buckets*bucketSlots }

// cursor is the displacement of the word that counts what has begun to move here.
func (x index) cursor() int { return x.start - lineWords }

// bucket is where a key's slots begin that has this hash.
func (x index) bucket(low uint32) int { return int(uint64(low) * uint64(x.buckets) >> 32) }

// place is the displacement of a slot of the bucket that is so many after another one.
func (x index) place(bucket, after, slot int) int {
	n := bucket + after
	if n >= x.buckets {
		n -= x.buckets
	}
	return x.start + n*bucketSlots + slot
}

// viewIn is the view of a rank whose memory is mapped.
func viewIn(words []uint64) view {
	return view{control(atomic.LoadUint64(&words[currentWord])), control(atomic.LoadUint64(&words[nextWord]))}
}

// readView reads a rank's controls. Who uses them is announced.
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

// valid tells whether a table may have such indexes.
func (t *Table) valid(v view) bool {
	return t.indexOf(v.current).buckets > 0 && (!v.moving() || t.indexOf(v.next).buckets > 0)
}

func (t *Table) strangeView(owner int, v view) error {
	return fmt.Errorf("%w: rank %d has its index at %#x, the next at %#x", ErrCorrupt, owner, uint64(v.current), uint64(v.next))
}

// A runView is what a lane knows of a rank.
type runView struct {
	view
	// run is the carryOut in which it was read, 0 if it is to be read again; asked: it is being read, into words.
	run   uint64
	asked bool
	words *[2]uint64
}

// locate has the operation begin in its owner's current index, by what is known of it, which the round reads
// again along with the first bucket: what was announced before it was read is not used again meanwhile.
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
			// It may be queued all the same.
			v.words = nil
			return err
		}
		v.run, v.view, v.asked = b.runs, known, true
	}
	op.view = v.view
	op.at = t.indexOf(op.view.current)
	return nil
}

// settleViews takes the views that the round has read. Those that it has not got are read again by the next round that needs them.
func (b *Batch) settleViews(l *lane) {
	t := b.table
	for _, rank := range l.touched {
		v, o := &l.views[rank], &l.owners[rank]
		if !v.asked {
			continue
		}
		v.asked = false
		if o.err != nil {
			// The words may yet be written.
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

// outdated tells whether the operation has looked at an index that is not current any more, and gives it what is
// known of the owner's otherwise.
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

// locateIn is locate where the owner's memory is mapped.
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
