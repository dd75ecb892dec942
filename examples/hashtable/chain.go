package hashtable

import (
	"context"
	"errors"
	"math/bits"

	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// Free pieces that a rank does not need go to the owner, for all to take: a list for each size,
// whose head is a word of the owner's header. A node is a piece, whose words tell of more:
//
//	word 0      bits 0-32: the next node's place plus 1, or 0; above: how many pieces it tells of
//	the others  their places, two a word
//
// A node is put before a list, or taken from it, by a compare-and-swap of the head. Who takes one has read it before,
// and is announced meanwhile as a Run is; the node itself is retired then, and only the pieces that it tells of
// are free at once. So nobody reads a node that is something else already, and none heads the list again, with another next
// one, before those have ended who have seen it there.

const (
	nextBits = 33
	nextMask = 1<<nextBits - 1
)

// pieceWords is how many words a record of so many is given, which are of few sizes so that
// pieces fit again: up to 8, and then four to every power of two. The least is one that can be a node.
func pieceWords(words int) int {
	if words <= 8 {
		return max(words, 2)
	}
	unit := 1 << (bits.Len(uint(words-1)) - 3)
	return min((words+unit-1)/unit*unit, longestRecord)
}

// class numbers the sizes that pieces have.
func class(words int) int {
	if words <= 8 {
		return words - 1
	}
	shift := bits.Len(uint(words-1)) - 3
	return 8 + (shift-1)*4 + (words-1)>>shift - 4
}

// keptPart is that of an owner's record space all ranks together keep one word in so many of a length, at most: about what waits in
// their bags at a time (setBags), for which it makes up.
const keptPart = 16

// share gives the owners what this rank has too much of. What no list is given stays here.
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

// isFailureOf tells whether err is that a rank has failed, whose memory nobody needs any more.
func isFailureOf(err error, rank int) bool {
	var peer *world.PeerError
	return errors.As(err, &peer) && peer.Rank == rank
}

// push puts pieces into an owner's list, as nodes that are chained before, or gives them back if it could not begin. If it
// cannot end they are lost: nothing here ends with the caller's context, but where an owner fails.
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
	// The first node is that of the last pieces, and the last in the chain that of the first ones.
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
			// Of those that were put something may yet be written.
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

// pop takes the first node of an owner's list of pieces that have words, and tells how many pieces that gave.
// Of a node that no table has left it takes what is in the record space.
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
	t.bag([]retired{{owner: owner, piece: piece{int(head - 1), words}}})
	for i := range min(int(record[0]>>nextBits), 2*(words-1)) {
		if place := uint64(uint32(record[1+i/2] >> (32 * (i % 2)))); t.holds(place, words) {
			t.spaces[owner].give(piece{int(place), words})
			taken++
		}
	}
	t.reclaimer.freed.Add(uint64(taken))
	return taken, nil
}

// loadWord reads a word. Neither it nor swapWord names its results: what a window is given to write into it may write after an
// error has been returned, too.
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

// swapWord sets a word that is as it was known, and gives what it was.
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

// holds tells whether a piece is in the record space.
func (t *Table) holds(place uint64, words int) bool {
	return place <= uint64(t.recordWords) && int(place)+words <= t.recordWords
}
