package hashtable

import "github.com/onesided/rma/window"

// Operations of a round that need record space at one rank share one atomic add to its tail. takeSpace adds up what
// they need, addSpace issues the add, and getSpace divides the result.

// takeSpace gives the operation space that this rank has already. Otherwise it requests space from the round.
func (b *Batch) takeSpace(op *operation) error {
	words, err := b.findSpace(op)
	if err != nil {
		return err
	}
	if words == 0 {
		op.step = stepWrite
		return b.writeRecord(op)
	}
	b.ownerOf(op).need += words
	return nil
}

// findSpace gives the operation space that this rank has already, or returns the number of words to be allocated.
func (b *Batch) findSpace(op *operation) (words int, err error) {
	t, owner := b.table, op.home.owner
	words = op.pieceWords()
	space, need := &t.spaces[owner], b.ownerOf(op).need
	if place, ok := space.take(words); ok {
		b.own(op, piece{place, words})
		return 0, nil
	}
	if left := space.left(t.recordWords); need+words > left {
		return 0, b.full(op, words, t.recordWords-left-space.remainder()+need)
	}
	return words, nil
}

// A Put needs a record whatever it finds. To save rounds it requests space while it reads the bucket, and writes the
// record while it reads the present one. If the early request fails, the Put requests space again when it cannot
// continue without.

// askEarly requests space for a Put's record from the round.
func (b *Batch) askEarly(op *operation) {
	if op.kind != opPut || op.own.words > 0 {
		return
	}
	if words, err := b.findSpace(op); err == nil && words > 0 {
		b.ownerOf(op).need += words
		op.asked = true
	}
}

// getEarly takes the space that askEarly requested, if the round has got it.
func (b *Batch) getEarly(op *operation) {
	op.asked = false
	if words := op.pieceWords(); b.allotted(op).words >= words {
		b.allot(op, words)
	}
}

// writeEarly puts a Put's record, if it has space and was not put before.
func (b *Batch) writeEarly(op *operation) error {
	if op.own.words == 0 || op.written {
		return nil
	}
	op.written = true
	return b.writeRecord(op)
}

// recordWords returns the length of the operation's record in words, and pieceWords the length of the piece for it.
func (op *operation) recordWords() int {
	return recordWords(op.kind == opAdd, len(op.key), len(op.value))
}

func (op *operation) pieceWords() int { return pieceWords(op.recordWords()) }

// own makes a piece the operation's, and sets the slot value that refers to it.
func (b *Batch) own(op *operation, p piece) {
	op.own = p
	op.swap = newSlot(op.home.fingerprint, op.kind == opAdd, p.place, op.recordWords())
}

func (b *Batch) full(op *operation, words, used int) error {
	b.isShort = true
	return &FullError{Rank: op.home.owner, Need: words * wordBytes, Used: used * wordBytes, Capacity: b.table.recordWords * wordBytes}
}

// addSpace issues the round's allocations.
func (b *Batch) addSpace(l *lane) {
	for _, rank := range l.touched {
		o := &l.owners[rank]
		if o.need == 0 {
			continue
		}
		if o.tail == nil {
			o.tail = new(uint64)
		}
		b.flushed(l, int(rank), b.table.words.FetchAndOp(window.Sum, uint64(o.need), o.tail, int(rank), tailWord))
	}
}

// getSpace takes the operation's share of the space that the round has allocated.
func (b *Batch) getSpace(op *operation) {
	words := op.pieceWords()
	if left := b.allotted(op).words; left < words {
		op.fail(b, b.full(op, words, b.table.recordWords-left))
		return
	}
	b.allot(op, words)
	op.step = stepWrite
}

// allotted returns the space that the round has allocated at the operation's owner and not yet allotted.
func (b *Batch) allotted(op *operation) piece {
	t, o := b.table, b.ownerOf(op)
	if o.need > 0 {
		tail := int(min(*o.tail, uint64(t.recordWords)))
		o.got = t.spaces[op.home.owner].added(tail, o.need, t.recordWords)
		o.need = 0
	}
	return o.got
}

// allot gives the operation words of that space.
func (b *Batch) allot(op *operation, words int) {
	o := b.ownerOf(op)
	b.own(op, piece{o.got.place, words})
	b.table.spaces[op.home.owner].use(words)
	o.got.place += words
	o.got.words -= words
}

// keepSpace keeps the space that no operation of the round could use: the end of the record space.
func (b *Batch) keepSpace(l *lane) {
	for _, rank := range l.touched {
		if o := &l.owners[rank]; o.got.words > 0 {
			b.table.spaces[rank].keep(o.got)
		}
	}
}
