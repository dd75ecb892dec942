package hashtable

import (
	"context"
	"errors"
	"math/bits"

	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// Free pieces that a rank does not need go to a list at their owner, from which every rank may take them. There is a
// list for each size; its head is a word of the owner's header. A node is a piece, whose words describe more pieces:
//
//	word 0      bits 0-32: the next node's offset plus 1, or 0; above: number of pieces described
//	the others  offsets of these pieces, two a word
//
// A compare-and-swap of the head inserts or removes a node. A rank that removes a node reads it first, and is
// announced meanwhile as a Run is. The node itself is then retired; only the pieces that it describes are free at
// once. So no rank reads a node that has been reused. A node cannot become the head again, with another successor,
// before the readers have ended that saw it as the head.

const (
	nextBits = 33
	nextMask = 1<<nextBits - 1
)

// pieceWords returns the number of words of the piece for a record of words words. There are few sizes, so that
// pieces fit again: each number of words until 8, and then four to every power of two. The smallest piece can be a
// node.
func pieceWords(words int) int {
	if words <= 8 {
		return max(words, 2)
	}
	unit := 1 << (bits.Len(uint(words-1)) - 3)
	return min((words+unit-1)/unit*unit, longestRecord)
}

// class numbers the sizes of pieces.
func class(words int) int {
	if words <= 8 {
		return words - 1
	}
	shift := bits.Len(uint(words-1)) - 3
	return 8 + (shift-1)*4 + (words-1)>>shift - 4
}

// All ranks together keep at most one word in keptPart of an owner's record space, for each size. That is about as
// much as waits in their retire lists at a time (setCloseWords), and makes up for it.
const keptPart = 16

// share gives the owners the pieces of which this rank has too many. Pieces that no list accepts stay here.
func (t *Table) share(ctx context.Context) error {
	for owner := range t.spaces {
		space := &t.spaces[owner]
		for words, places := range space.surplus(t.recordWords / (keptPart * t.size)) {
			left, err := t.push(ctx, owner, words, places)
			for _, place := range left {
				space.give(piece{int(place), words})
			}
			if err != nil && !isFailureOf(err, owner) {
				return err
			}
		}
	}
	return nil
}

// isFailureOf reports whether err is the failure of the rank. The memory of a failed rank is not needed any more.
func isFailureOf(err error, rank int) bool {
	var peer *world.PeerError
	return errors.As(err, &peer) && peer.Rank == rank
}

// push puts pieces into an owner's list, as a chain of nodes. It returns the pieces if it could not begin. If it
// cannot finish, they are lost. So it ignores the end of the caller's context, and fails only if the owner does.
func (t *Table) push(ctx context.Context, owner, words int, places []uint32) (left []uint32, err error) {
	ctx = context.WithoutCancel(ctx)
	at, each := listStart+class(words), 2*(words-1)+1
	head, err := t.loadWord(ctx, owner, at)
	if err != nil {
		return places, err
	}
	put := func(place uint32, record []uint64) {
		if err == nil {
			err = t.putWords(record, owner, t.recordStart()+int(place))
		}
	}
	// Nodes are made from the end of the chain: each needs the place of the next.
	var last []uint64
	next := head
	for from := 0; from < len(places); from += each {
		node, more := places[from], places[from+1:min(from+each, len(places))]
		record := make([]uint64, words)
		record[0] = next | uint64(len(more))<<nextBits
		for i, place := range more {
			record[1+i/2] |= uint64(place) << (32 * (i % 2))
		}
		put(node, record)
		if last == nil {
			last = record
		}
		next = uint64(node) + 1
	}
	for {
		if err == nil {
			err = t.words.Flush(ctx, owner)
		}
		if err != nil {
			// The Puts of these pieces may still arrive.
			return nil, err
		}
		was, err := t.swapWord(ctx, owner, at, head, next)
		if err != nil || was == head {
			return nil, err
		}
		head = was
		last[0] = head | last[0]&^nextMask
		put(places[0], last[:1])
	}
}

// pop takes the first node of an owner's list for this size and returns the number of pieces that it gained. It
// checks a node that no table has written: it takes only pieces within the record space.
func (t *Table) pop(ctx context.Context, owner, words int) (taken int, err error) {
	word, err := t.enter(ctx, 0)
	if err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			t.leaveLater(word, []int{owner})
		} else {
			t.leave(word)
		}
	}()
	ctx = context.WithoutCancel(ctx)
	at := listStart + class(words)
	head, err := t.loadWord(ctx, owner, at)
	if err != nil {
		return 0, err
	}
	record := make([]uint64, words)
	for {
		if head == 0 || !t.holds(head-1, words) {
			return 0, nil
		}
		err := t.words.Get(record, owner, t.recordStart()+int(head-1))
		if err == nil {
			err = t.words.Flush(ctx, owner)
		}
		if err != nil {
			return 0, err
		}
		was, err := t.swapWord(ctx, owner, at, head, record[0]&nextMask)
		if err != nil {
			return 0, err
		}
		if was == head {
			break
		}
		head = was
	}
	t.addRetired([]retired{{owner: owner, piece: piece{int(head - 1), words}}})
	for i := range min(int(record[0]>>nextBits), 2*(words-1)) {
		if place := uint64(uint32(record[1+i/2] >> (32 * (i % 2)))); t.holds(place, words) {
			t.spaces[owner].give(piece{int(place), words})
			taken++
		}
	}
	t.reclaimer.freed.Add(uint64(taken))
	return taken, nil
}

// loadWord reads a word. Neither it nor swapWord has named results: after an error the window may still write to the
// variable that it was given.
func (t *Table) loadWord(ctx context.Context, owner, at int) (uint64, error) {
	var word uint64
	err := t.words.FetchAndOp(window.NoOp, 0, &word, owner, at)
	if err == nil {
		err = t.words.Flush(ctx, owner)
	}
	if err != nil {
		return 0, err
	}
	return word, nil
}

// swapWord replaces a word that is equal to known, and returns the value that it had.
func (t *Table) swapWord(ctx context.Context, owner, at int, known, to uint64) (uint64, error) {
	var was uint64
	err := t.words.CompareAndSwap(known, to, &was, owner, at)
	if err == nil {
		err = t.words.Flush(ctx, owner)
	}
	if err != nil {
		return 0, err
	}
	return was, nil
}

// holds reports whether a piece is in the record space.
func (t *Table) holds(place uint64, words int) bool {
	return place <= uint64(t.recordWords) && int(place)+words <= t.recordWords
}
