package hashtable

import "github.com/onesided/rma/window"

// The operations of a round that need record space at one rank share one atomic
// add to its tail: takeSpace sums up, addSpace adds, getSpace deals out.

// takeSpace gives the operation space that this rank has already, else has the round
// allocate it.
func (b *Batch) takeSpace(op *operation) error {
	t, owner := b.table, op.home.owner
	counter := op.kind == opAdd
	words := recordWords(counter, len(op.key), len(op.value))
	space := &t.spaces[owner]
	if place, ok := space.take(words); ok {
		b.own(op, piece{place, words})
		op.step = stepWrite
		return b.writeRecord(op)
	}
	o := &b.owners[owner]
	if left := space.left(t.recordWords); o.need+words > left {
		return b.full(op, words, t.recordWords-left+o.need)
	}
	o.need += words
	return nil
}

// own makes space the operation's, and its slot's next value a reference to it.
func (b *Batch) own(op *operation, p piece) {
	op.own = p
	op.swap = newSlot(op.home.fingerprint, op.kind == opAdd, p.place, p.words)
}

func (b *Batch) full(op *operation, words, used int) error {
	return &FullError{Rank: op.home.owner, Need: words * wordBytes, Used: used * wordBytes, Capacity: b.table.recordWords * wordBytes}
}

// addSpace issues the round's allocations.
func (b *Batch) addSpace() {
	for _, rank := range b.touched {
		o := &b.owners[rank]
		if o.need == 0 {
			continue
		}
		if err := b.table.words.FetchAndOp(window.Sum, uint64(o.need), &o.tail, int(rank), tailWord); err != nil {
			o.err = err
		}
	}
}

// getSpace takes the operation's part of what the round has allocated.
func (b *Batch) getSpace(op *operation) {
	t, o := b.table, &b.owners[op.home.owner]
	if o.need > 0 {
		tail := int(min(o.tail, uint64(t.recordWords)))
		o.got = t.spaces[op.home.owner].added(tail, o.need, t.recordWords)
		o.need = 0
	}
	words := recordWords(op.kind == opAdd, len(op.key), len(op.value))
	if o.got.words < words {
		op.fail(b, b.full(op, words, t.recordWords-o.got.words))
		return
	}
	b.own(op, piece{o.got.place, words})
	o.got.place += words
	o.got.words -= words
	op.step = stepWrite
}

// keepSpace keeps what nobody in the round could use: the end of the record space.
func (b *Batch) keepSpace() {
	for _, rank := range b.touched {
		if o := &b.owners[rank]; o.got.words > 0 {
			b.table.spaces[rank].keep(o.got)
		}
	}
}
