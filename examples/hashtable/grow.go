package hashtable

import (
	"context"
	"errors"

	"github.com/onesided/rma/window"
)

// A rank's index is replaced when new keys lie far from their homes. The next index has twice the buckets, or the
// same number if most slots belong to deleted keys. Any rank may begin that, and moves the keys. Ranks that insert
// keys meanwhile move some of them, and move all if the first rank does not continue.

// A note is what a Run has observed of an owner's index.
type note struct {
	owner int
	// farFromHome: a new key lies far from its home. moving: keys are moving, and one was to be inserted. noSlot: no
	// slot was left for a new key. known names the index.
	farFromHome, moving, noSlot bool
	known                       control
}

const (
	// A new key lies far from its home if it is at least farProbes buckets away. After farKeys of these the
	// index is examined.
	farProbes = 4
	farKeys   = 16
	// sampledBuckets is the number of buckets that are examined.
	sampledBuckets = 64
)

// note returns the note about the operation's owner.
func (b *Batch) note(op *operation) *note {
	for i := range b.notes {
		if n := &b.notes[i]; n.owner == op.home.owner {
			return n
		}
	}
	b.notes = append(b.notes, note{owner: op.home.owner})
	return &b.notes[len(b.notes)-1]
}

// makeSlots replaces the indexes that had no slot for an operation, and reports whether to try again.
func (b *Batch) makeSlots(ctx context.Context) (again bool) {
	for i := range b.notes {
		n := &b.notes[i]
		if !n.noSlot {
			continue
		}
		n.noSlot = false
		grown, err := b.table.grow(ctx, n.owner, n.known)
		if errors.Is(err, errNoBlock) {
			b.short = append(b.short, shortage{owner: n.owner, known: n.known})
		}
		// If something is wrong with the owner, the next try of the operation returns the error.
		again = again || grown || isFailureOf(err, n.owner) || errors.Is(err, ErrCorrupt)
	}
	return again
}

// maintain does work on owners' indexes for which no operation has to wait. Errors show in the operations that need the
// owner.
func (b *Batch) maintain(ctx context.Context) {
	t := b.table
	for i := range b.notes {
		switch n := &b.notes[i]; {
		case n.moving:
			_ = t.help(ctx, n.owner)
		case n.farFromHome && t.farFromHome[n.owner].Add(1)%farKeys == 0:
			_, _ = t.grow(ctx, n.owner, n.known)
		}
	}
	b.notes = b.notes[:0]
}

// during calls do with an owner's view within an announcement. So the view's indexes are not reused until do returns.
func (t *Table) during(ctx context.Context, owner int, do func(v view) error) error {
	if err := checkContext(ctx); err != nil {
		return err
	}
	word, err := t.enter(ctx, 0)
	if err != nil {
		return err
	}
	v, err := t.readView(ctx, owner)
	if err == nil {
		err = do(v)
	}
	if err != nil {
		t.leaveLater(word, []int{owner})
	} else {
		t.leave(word)
	}
	return err
}

// errNoBlock reports that the block for an index of the same size is in use or waits in a retire list.
var errNoBlock = errors.New("hashtable: no room for another index")

// grow replaces an owner's index if it is full and is the one named by known. It reports whether there is another
// index now.
func (t *Table) grow(ctx context.Context, owner int, known control) (grown bool, err error) {
	var v view
	var l load
	err = t.during(ctx, owner, func(now view) (err error) {
		if v = now; v.current == known && !v.moving() {
			l, err = t.loadOf(ctx, owner, t.indexOf(v.current))
		}
		return err
	})
	switch {
	case err != nil:
		return false, err
	case v.current != known:
		return true, nil
	case v.moving():
		return true, t.moveAll(ctx, owner, v)
	case !l.full():
		return false, nil
	}
	level, line, err := t.takeNext(ctx, owner, v.current.level(), l)
	if err != nil || line < 0 {
		return false, err
	}
	if v.next, err = t.publish(ctx, owner, v.current, level, line); err != nil {
		return false, err
	}
	if !v.moving() {
		// The two words were read at different moments and belong to no current index.
		v, err = t.readView(ctx, owner)
		return err == nil && v.current != known, err
	}
	return true, t.moveAll(ctx, owner, v)
}

// publish makes a block the next index, unless an index follows the current one already, and returns the control of
// the next index. The compare-and-swap expects the control of the current index, which the word holds while no index
// follows. The word may hold a newer value than the one that was read with current: the control of an index to which
// keys move already.
func (t *Table) publish(ctx context.Context, owner int, current control, level, line int) (next control, err error) {
	next = newControl(line, level, current.following())
	was, err := t.swapWord(ctx, owner, nextWord, uint64(current), uint64(next))
	if err != nil {
		return 0, err
	}
	if was == uint64(current) {
		t.growths.Add(1)
		return next, nil
	}
	// Another rank was faster.
	t.giveBlock(ctx, owner, piece{line, blockWords(t.buckets << level)})
	return control(was), nil
}

// takeNext takes a block for the next index of an owner: of twice the slots, or of the same number if that is enough
// without the deleted keys. Along with the first block of a level it takes a second one. So deleted keys can be
// dropped later, even when the record space is full. If there is no room for both blocks, deleted keys are dropped
// first. line is -1 if there is no room and few keys are deleted.
func (t *Table) takeNext(ctx context.Context, owner, level int, l load) (taken, line int, err error) {
	larger := -1
	if !l.sparse() {
		if larger, err = t.takeBlock(ctx, owner, level+1); err != nil {
			return 0, -1, err
		}
		twin := -1
		if larger >= 0 {
			if twin, err = t.takeBlock(ctx, owner, level+1); err != nil {
				return 0, -1, err
			}
		}
		if twin >= 0 {
			t.giveBlock(ctx, owner, piece{twin, blockWords(t.buckets << (level + 1))})
		}
		if twin >= 0 || !l.purgeable() {
			return level + 1, larger, nil
		}
	}
	if larger >= 0 {
		t.giveBlock(ctx, owner, piece{larger, blockWords(t.buckets << (level + 1))})
	}
	if line, err = t.takeBlock(ctx, owner, level); err == nil && line < 0 {
		err = errNoBlock
	}
	return level, line, err
}

// mayGrow reports whether an owner has, or will soon have, another index than the one named by known, or has a block
// for one.
func (t *Table) mayGrow(ctx context.Context, owner int, known control) (bool, error) {
	v, err := t.readView(ctx, owner)
	if err != nil || v.current != known || v.moving() {
		return err == nil, err
	}
	spare, err := t.loadWord(ctx, owner, blockStart+known.level())
	return spare != 0, err
}

// A load counts slots, those of them that are taken, and those that belong to live keys.
type load struct{ slots, taken, live int }

func (l load) full() bool      { return 2*l.taken >= l.slots }
func (l load) sparse() bool    { return 8*l.live <= 3*l.slots }
func (l load) purgeable() bool { return 8*l.live <= 7*l.taken }

// loadOf examines some buckets of an index.
func (t *Table) loadOf(ctx context.Context, owner int, x index) (l load, err error) {
	n := min(x.buckets, sampledBuckets)
	slots := make([]uint64, n*bucketSlots)
	for i := range n {
		at := x.place(i*x.buckets/n, 0, 0)
		if err := t.words.GetAccumulate(window.NoOp, nil, slots[i*bucketSlots:][:bucketSlots], owner, at); err != nil {
			return load{}, err
		}
	}
	if err := t.words.Flush(ctx, owner); err != nil {
		return load{}, err
	}
	l.slots = len(slots)
	for _, s := range slots {
		if slot(s).taken() {
			l.taken++
		}
		if slot(s).live() {
			l.live++
		}
	}
	return l, nil
}

// moveAll moves the keys that are left in the view's current index to the next one, and then makes the next one
// current.
func (t *Table) moveAll(ctx context.Context, owner int, v view) error {
	parts, over, err := 1, false, error(nil)
	for claimed := 0; claimed < parts && !over && err == nil; {
		over, err = t.moving(ctx, owner, v, func(from, to index) (err error) {
			claimed, parts, err = t.moveNext(ctx, owner, from, to)
			return err
		})
	}
	// A rank that claimed a part may not have moved it.
	for part := 0; part < parts && !over && err == nil; part++ {
		over, err = t.moving(ctx, owner, v, func(from, to index) error { return t.movePart(ctx, owner, from, to, part) })
	}
	if over || err != nil {
		return err
	}
	_, err = t.moving(ctx, owner, v, func(from, _ index) error {
		was, err := t.swapWord(ctx, owner, currentWord, uint64(v.current), uint64(v.next))
		if err == nil && control(was) == v.current {
			t.reclaimer.blocks.Add(1)
			t.addRetired([]retired{{owner: owner, piece: piece{v.current.line(), blockWords(from.buckets)}, block: true}})
		}
		return err
	})
	t.freeBlocks(ctx)
	return err
}

// freeBlocks waits for a while until the operations have ended that may know the blocks in this rank's retire lists.
// Other ranks may need a block when this rank has nothing more to do.
func (t *Table) freeBlocks(ctx context.Context) {
	r, since := &t.reclaimer, t.world.Now()
	for look := 0; r.blocks.Load() > 0 && t.world.Now()-since < t.patience; look++ {
		r.checking.Lock()
		_, err := t.pass(ctx)
		r.checking.Unlock()
		if err != nil || r.blocks.Load() > 0 && t.await(ctx, look) != nil {
			return
		}
	}
}

// moving calls do within an announcement if keys still move as view v says. Otherwise it reports over.
func (t *Table) moving(ctx context.Context, owner int, v view, do func(from, to index) error) (over bool, err error) {
	err = t.during(ctx, owner, func(now view) error {
		if over = now != v; over {
			return nil
		}
		return do(t.indexOf(v.current), t.indexOf(v.next))
	})
	return over, err
}

// help moves some keys. If all parts were claimed a while ago and the move has not ended, it moves all.
func (t *Table) help(ctx context.Context, owner int) error {
	var v view
	claimed, parts := 0, 0
	err := t.during(ctx, owner, func(now view) (err error) {
		if v = now; v.moving() {
			claimed, parts, err = t.moveNext(ctx, owner, t.indexOf(v.current), t.indexOf(v.next))
		}
		return err
	})
	if err == nil && parts > 0 && claimed >= 2*parts && claimed%parts == 0 {
		err = t.moveAll(ctx, owner, v)
	}
	return err
}

// moveNext moves the next part that no rank has claimed. If claimed is parts or more, all parts have been claimed.
func (t *Table) moveNext(ctx context.Context, owner int, from, to index) (claimed, parts int, err error) {
	parts = (from.buckets + partBuckets - 1) / partBuckets
	var word uint64
	if err = t.words.FetchAndOp(window.Sum, 1, &word, owner, to.cursor()); err == nil {
		err = t.words.Flush(ctx, owner)
	}
	if err != nil {
		return 0, parts, err
	}
	if claimed = int(word & (1<<62 - 1)); claimed < parts {
		err = t.movePart(ctx, owner, from, to, claimed)
	}
	return claimed, parts, err
}
