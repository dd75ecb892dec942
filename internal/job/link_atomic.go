package job

import (
	"context"
	"errors"
	"fmt"

	"github.com/onesided/rma/internal/bounds"
	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/verbs"
)

// A card carries out additions and swaps of 8 bytes by itself, atomic to those of all others
// that go through it. To what a processor does by atomic instructions they are atomic only where
// they are coherent. Elsewhere a rank has what it does to memory that it maps, its own included, done
// by cards too: see [World.CardLink].

// CardAtomics tells whether this rank's network card has atomics of its own, and whether they are
// coherent with the processor's. A card that the processor moves has none of its own.
func (w *World) CardAtomics() (own, coherent bool) {
	c := w.cards[networkCard]
	if c == nil {
		return false, false
	}
	return c.attributes.CardAtomics, c.attributes.CoherentAtomics
}

// results are the words that atomics of a link fill, one for each request that may be
// outstanding: that of a request is at its number modulo theirs.
//
// Invariants:
//
//   - What had a word has completed before another atomic takes it, since there is room for
//     mostSends requests.
//   - A result is where the program wants it before done says that its request has completed, and
//     is not touched after the link has ended.
type results struct {
	region verbs.MemoryRegion
	// into is where the result goes, nil if it has gone or nobody wants it. The mutex of the link
	// guards it.
	into [mostSends]*uint64
}

const wordBytes = 8

// FetchAdd adds to the word at offset of a region, as one of the rank's card's atomics, and puts
// what it was before in result, unless that is nil, by the time that Flush or Settle returns. As
// to ctx it is as Write.
func (l *Link) FetchAdd(ctx context.Context, operand uint64, result *uint64, at verbs.RemoteRegion, offset uint64) error {
	return l.atomic(ctx, &verbs.SendRequest{Opcode: verbs.OpFetchAdd, Operand: operand, RemoteAddress: at.Address + offset, RKey: at.RKey}, result)
}

// CompareSwap sets the word at offset of a region to swap if it equals compare. Else it is as
// FetchAdd.
func (l *Link) CompareSwap(ctx context.Context, compare, swap uint64, result *uint64, at verbs.RemoteRegion, offset uint64) error {
	return l.atomic(ctx, &verbs.SendRequest{Opcode: verbs.OpCompareSwap, Operand: swap, Compare: compare, RemoteAddress: at.Address + offset, RKey: at.RKey}, result)
}

func (l *Link) atomic(ctx context.Context, what *verbs.SendRequest, result *uint64) error {
	if err := l.enter(ctx, false); err != nil {
		return err
	}
	into, err := l.placesOfResults()
	if err != nil {
		l.mu.Unlock()
		return err
	}
	r, b := l.next(what.Opcode)
	r.RemoteAddress, r.RKey, r.Operand, r.Compare = what.RemoteAddress, what.RKey, what.Operand, what.Compare
	place := l.sequence % mostSends
	into.into[place] = result
	b.segment[0] = verbs.Segment{Memory: into.word(place), LKey: into.region.LKey()}
	l.leave(wordBytes)
	return nil
}

// placesOfResults are made with the first atomic. It is called with the mutex.
func (l *Link) placesOfResults() (*results, error) {
	if r := l.results.Load(); r != nil {
		return r, nil
	}
	region, err := l.card.device.RegisterMemory(make([]byte, mostSends*wordBytes), verbs.LocalWrite)
	if err != nil {
		return nil, errtext.Errorf("world: registering what atomics fill: %w", err)
	}
	r := &results{region: region}
	l.results.Store(r)
	return r, nil
}

func (r *results) word(place uint64) []byte {
	return r.region.Memory()[place*wordBytes:][:wordBytes:wordBytes]
}

// bring puts what requests have read that have completed, up to one, where it goes, and gives back
// the buffers that they went through. It is called before that is known, with the mutex of progress.
func (l *Link) bring(completed uint64) {
	if l.results.Load() != nil || l.staged.Load() != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.bringHere(completed)
	}
}

// bringHere is bring with the mutex of the link.
func (l *Link) bringHere(completed uint64) {
	r, s := l.results.Load(), l.staged.Load()
	if r == nil && s == nil {
		return
	}
	for sequence := l.done.Load() + 1; sequence <= completed; sequence++ {
		place := sequence % mostSends
		if r != nil {
			r.bring(place)
		}
		if s != nil {
			s.unstage(l, place)
		}
	}
}

// bring puts the result of a request where it goes.
func (r *results) bring(place uint64) {
	if into := r.into[place]; into != nil {
		*into = bounds.Word(r.word(place)).Load()
		r.into[place] = nil
	}
}

// CardLink is this rank's link to another, or to itself, over its network card: for the card's
// atomics on memory that ranks map, too. It is made at first use. To a rank whose memory this one
// maps it is mute: see [Link.Mute].
func (w *World) CardLink(rank int) (*Link, error) {
	if !w.Mapped(rank) {
		return w.Link(rank)
	}
	if l := w.cardLinks[rank].Load(); l != nil {
		return l, nil
	}
	c := w.cards[networkCard]
	if c == nil {
		return nil, &verbs.CapabilityError{Device: w.home.attributes.Name, Capability: fmt.Sprintf("reach rank %d through a network card", rank), Reason: "there is none"}
	}
	if err := w.Failure(rank); err != nil {
		return nil, err
	}
	w.engine.Lock()
	defer w.engine.Unlock()
	if l := w.cardLinks[rank].Load(); l != nil {
		return l, nil
	}
	l := &Link{world: w, rank: rank, card: c, mute: true}
	if err := l.dial(); err != nil {
		return nil, errtext.Errorf("world: connecting to rank %d through the network card: %w", rank, w.blame(rank, err))
	}
	w.cardLinks[rank].Store(l)
	return l, nil
}

// Mute tells whether the link carries no messages, but writes, reads and atomics: nobody receives
// at its other end, which takes no part.
func (l *Link) Mute() bool { return l.mute }

// acceptMute makes the other end of a mute link of a rank, in the place of one that has ended.
func (w *World) acceptMute(c *card, rank int, caller verbs.ConnectionRequest) error {
	if !w.Mapped(rank) {
		return fmt.Errorf("rank %d shares no memory with this one: its links carry messages", rank)
	}
	before := w.muteEnds[rank]
	if before != nil && before.State() == verbs.StateReady {
		return connectedAlready(rank)
	}
	pair, err := caller.Accept(verbs.QueuePairConfig{SendQueue: c.queue, ReceiveQueue: c.queue, MaxSends: 1, MaxReceives: 1})
	if err != nil {
		return err
	}
	if err := w.lines.add(rank, pair); err != nil {
		return errors.Join(err, pair.Close())
	}
	if before != nil {
		w.hangUp(rank, before)
	}
	w.muteEnds[rank] = pair
	w.engine.StartBackground()
	return nil
}

// CardPlace is the one of a rank's places that network cards reach.
func (w *World) CardPlace(places *Places) verbs.RemoteRegion { return places[networkCard] }
