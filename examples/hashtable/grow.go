package hashtable

import (
	"context"
	"errors"

	"github.com/onesided/rma/window"
)

// A rank's index is replaced when new keys lie far from their homes: by one of twice the buckets, or, if most of
// its slots are of keys that were deleted, by one of as many. Any rank begins that, and moves the keys; those that
// insert meanwhile move some, too, and all of them if the one who began does not go on.

// A note is what a Run has met of an owner's index.
type note struct {
	owner int
	// crowded: a new key is far from its home. moving: keys are moving, and one was to be inserted. cramped: there
	// was no slot for a new key. known names the index.
	crowded, moving, cramped bool
	known                    control
}

const (
	// crowdedProbes is how many buckets a new key is from its home that lies far from it, and crowdedTurns
	// how many of these have the index looked at.
	crowdedProbes = 4
	crowdedTurns  = 16
	// sampledBuckets are looked at.
	sampledBuckets = 64
)

// note is the one of the operation's owner.
func (b *Batch) note(op *operation) *note {
	for i := range b.notes {
		if n := &b.notes[i]; n.owner == op.home.owner {
			return n
		}
	}
	b.notes = append(b.notes, note{owner: op.home.owner})
	return &b.notes[len(b.notes)-1]
}

// makeSlots has indexes grow that had no slot for an operation, and tells whether that is worth another try.
func (b *Batch) makeSlots(ctx context.Context) (again bool) {
	for i := range b.notes {
		n := &b.notes[i]
		if !n.cramped {
			continue
		}
		n.cramped = false
		grown, err := b.table.grow(ctx, n.owner, n.known)
		if errors.Is(err, errNoBlock) {
			b.starved = append(b.starved, starvation{owner: n.owner, known: n.known})
		}
		// The operation itself is to tell what is wrong with its owner.
		again = again || grown || isFailureOf(err, n.owner) || errors.Is(err, ErrCorrupt)
	}
	return again
}

// tend does for owners' indexes what no operation has to wait for. An error concerns the operations that need the
// owner.
func (b *Batch) tend(ctx context.Context) {
	t := b.table
	for i := range b.notes {
		switch n := &b.notes[i]; {
		case n.moving:
			_ = t.help(ctx, n.owner)
		case n.crowded && t.crowded[n.owner].Add(1)%crowdedTurns == 0:
			_, _ = t.grow(ctx, n.owner, n.known)
		}
	}
	b.notes = b.notes[:0]
}

// during calls do with an owner's view, announced, so that what the view names is an index all the time.
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

// errNoBlock: the block for an index of the same size is in use or waits in a bag.
var errNoBlock = errors.New("hashtable: no room for another index")

// grow replaces an owner's index, if that is the one that known names and is full, and tells whether there is
// another now.
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
		// The view was of two moments, and of no index that is current.
		v, err = t.readView(ctx, owner)
		return err == nil && v.current != known, err
	}
	return true, t.moveAll(ctx, owner, v)
}

// publish has the next index be in a block if none follows the current one, and gives the control of what is the next one
// then. It expects there what is there before an index follows: the control of the current one. What was read
// along with that may be a moment younger: the control of a later index, to which keys move already.
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
	// Another rank has been faster.
	t.giveBlock(ctx, owner, piece{line, blockWords(t.buckets << level)})
	return control(was), nil
}

// takeNext takes a block for the next index of an owner: one of twice the slots, or of as many if that is enough when
// deleted keys are gone. Along with the first of a level it takes another, so that deleted keys can go whatever
// becomes of the record space; where there is no room for both they go first. line is -1 if there is
// no room and they are few.
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

// mayGrow tells whether an owner has another index than the one that known names, or is about to, or has a block for it.
func (t *Table) mayGrow(ctx context.Context, owner int, known control) (bool, error) {
	v, err := t.readView(ctx, owner)
	if err != nil || v.current != known || v.moving() {
		return err == nil, err
	}
	spare, err := t.loadWord(ctx, owner, blockStart+known.level())
	return spare != 0, err
}

// A load is how many of some slots are taken, and how many of those by keys that are there.
type load struct{ slots, taken, live int }

func (l load) full() bool      { return 2*l.taken >= l.slots }
func (l load) sparse() bool    { return 8*l.live <= 3*l.slots }
func (l load) purgeable() bool { return 8*l.live <= 7*l.taken }

// loadOf looks at some buckets of an index.
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

// moveAll moves what keys are left in the index of a view to the next one, and makes that the current one.
func (t *Table) moveAll(ctx context.Context, owner int, v view) error {
	parts, over, err := 1, false, error(nil)
	for claimed := 0; claimed < parts && !over && err == nil; {
		over, err = t.moving(ctx, owner, v, func(from, to index) (err error) {
			claimed, parts, err = t.moveNext(ctx, owner, from, to)
			return err
		})
	}
	// Who was to move the others may not have come to it.
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
			t.bag([]retired{{owner: owner, piece: piece{v.current.line(), blockWords(from.buckets)}, block: true}})
		}
		return err
	})
	t.freeBlocks(ctx)
	return err
}

// freeBlocks waits a while for those to end who may know the blocks in this rank's bags: others may need one, and
// this rank have nothing more to do.
func (t *Table) freeBlocks(ctx context.Context) {
	r, since := &t.reclaimer, t.world.Now()
	for look := 0; r.blocks.Load() > 0 && t.world.Now()-since < t.patience; look++ {
		r.looking.Lock()
		_, err := t.pass(ctx)
		r.looking.Unlock()
		if err != nil || r.blocks.Load() > 0 && t.await(ctx, look) != nil {
			return
		}
	}
}

// moving calls do, announced, if keys still move as a view says; else it is over.
func (t *Table) moving(ctx context.Context, owner int, v view, do func(from, to index) error) (over bool, err error) {
	err = t.during(ctx, owner, func(now view) error {
		if over = now != v; over {
			return nil
		}
		return do(t.indexOf(v.current), t.indexOf(v.next))
	})
	return over, err
}

// help moves some keys. That somebody has begun to move all of them a while ago, and they have not come, has it move all.
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

// moveNext moves the next part of the keys that nobody has begun to move. If claimed is parts or more all have been begun.
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
