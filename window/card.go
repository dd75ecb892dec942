package window

import (
	"fmt"

	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/internal/job"
)

// A network card has atomics of its own: it adds to words of 8 bytes and swaps them while the
// target's processor does something else. They are atomic to each other, and to the instructions
// of processors only where the card is coherent with them. So a window made with CardAtomics has
// all of its accumulate family done in one of three ways, which the ranks choose when they make it:
//
//   - in the window's other ways, where the ranks do not all have such cards, or the memory is the
//     programs' own and some ranks share it;
//   - by the cards, also on memory that is mapped, over mute links (world.CardLink);
//   - by the cards over links, and by the processor's atomic instructions on memory that is mapped,
//     where the cards are coherent with them.

// CardAtomics has network cards execute the accumulate family by their atomics, if the cards of all ranks have atomics.
// Otherwise it has no effect but the promise. It saves processor time of the target. It may be slower: each element is a
// request of its own, and none travels with a lock.
//
// CardAtomics promises that operations of the accumulate family have elements of int64 or uint64 and are Sum, NoOp or
// CompareAndSwap. They may have any number of elements. Others are rejected with an [ErrHint], on every device.
func CardAtomics() Option {
	return func(s *settings) error { s.CardAtomics = true; return nil }
}

// ability is what a rank, or each rank of a window, can do about CardAtomics: a set.
type ability uint32

const (
	// cardHasAtomics: its network card has atomics, and carries them out on its part.
	cardHasAtomics ability = 1 << iota
	// cardIsCoherent: they are coherent with its processor's.
	cardIsCoherent
	// mapsNobody: it maps the memory of no other rank.
	mapsNobody

	allAbilities = cardHasAtomics | cardIsCoherent | mapsNobody
)

// abilityOf is that of this rank with a part.
func abilityOf(w *job.World, p *part) (a ability) {
	own, coherent := w.CardAtomics()
	if own && (len(p.memory) == 0 || p.takesAtomics) {
		a |= cardHasAtomics
	}
	if coherent {
		a |= cardIsCoherent
	}
	for rank := range w.Size() {
		if rank != w.Rank() && w.Mapped(rank) {
			return a
		}
	}
	return a | mapsNobody
}

// cardUse is what cards do of the accumulate family on a window.
type cardUse uint8

const (
	// cardsUnused: nothing.
	cardsUnused cardUse = iota
	// cardsOverLinks: what goes over links. Mapped memory is for the processor's atomics.
	cardsOverLinks
	// cardsAlone: all of it.
	cardsAlone
)

// cardUseOf is the one that suits what all ranks of a window can do. The programs' own memory,
// which Create has, may be reached by system calls, unless no rank maps another.
func cardUseOf(all ability, allocated bool) cardUse {
	has := func(a ability) bool { return all&a == a }
	switch {
	case !has(cardHasAtomics):
		return cardsUnused
	case !allocated && !has(mapsNobody):
		return cardsUnused
	case has(cardIsCoherent):
		return cardsOverLinks
	}
	return cardsAlone
}

// useCards has cards do the accumulate family as suits what the ranks have described.
func (c *core) useCards(all []description, allocated bool) {
	if !c.hints.CardAtomics {
		return
	}
	common := allAbilities
	for rank := range all {
		common &= all[rank].ability
	}
	// Others may have the window already, and send what they do not leave to cards.
	switch c.cards = cardUseOf(common, allocated); c.cards {
	case cardsOverLinks:
		c.native = true
	case cardsAlone:
		c.remote = true
	}
}

// kernelsOf are those by which a view of this window does operations at once. What has none goes
// the long way.
func (c *core) kernelsOf(kind reduce.Kind) *kernels {
	switch {
	case !c.hints.CardAtomics:
		return kernelsFor(kind)
	case c.cards == cardsAlone || refuseKind(kind) != nil:
		return new(kernels)
	}
	k, all := new(kernels), kernelsFor(kind)
	for _, op := range cardOps {
		k.apply[op], k.fetch[op], k.atomic[op] = all.apply[op], all.fetch[op], all.atomic[op]
	}
	k.swap, k.swaps = all.swap, true
	return k
}

// cardOps are the operations that cards have.
var cardOps = [...]Op{Sum, NoOp}

// refuseKind says why the accumulate family of a window made with CardAtomics is not of a kind.
func refuseKind(kind reduce.Kind) error {
	if kind == reduce.Int64 || kind == reduce.Uint64 {
		return nil
	}
	return fmt.Errorf("%w: the window was made with CardAtomics, which are of %v and %v, this is of %v", ErrHint, reduce.Int64, reduce.Uint64, kind)
}

// refuseAtomic says why such a window refuses an accumulate.
func (v *view) refuseAtomic(op Op) error {
	if err := refuseKind(v.kind); err != nil {
		return err
	}
	for _, has := range cardOps {
		if op == has {
			return nil
		}
	}
	return fmt.Errorf("%w: the window was made with CardAtomics, which are %v, %v and CompareAndSwap, this is %v", ErrHint, Sum, NoOp, op)
}

// through is the peer of an operation of the accumulate family on a rank: that of one whose part is
// mapped has a link where cards alone do them. It is made at first use.
func (c *core) through(p *peer, rank int) (*peer, error) {
	if c.cards != cardsAlone || p.link != nil {
		return p, nil
	}
	link, err := c.world.CardLink(rank)
	if err != nil {
		return nil, err
	}
	linked := &peer{control: p.control, data: p.data, neighbor: p.neighbor, block: p.block, region: p.region, link: link}
	linked.deferred = newDeferred(c, link, c.exposed[rank].card, true)
	c.peers[rank].CompareAndSwap(p, linked)
	return c.peers[rank].Load(), nil
}
