package window

import (
	"fmt"

	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/internal/job"
)

// Some network cards have atomics. They add to words of 8 bytes and swap them while the target's processor does
// something else. These atomics are atomic to each other. They are atomic to the instructions of processors only if the
// card is coherent with them. So a window made with CardAtomics does all of its accumulate family in one of three ways,
// which the ranks choose when they make it:
//
//   - As other windows do, if some rank has no such card, or if the memory is the programs' own and some ranks share
//     it.
//   - By the cards alone, also on mapped memory, over write-only links (job.World.CardLink).
//   - By the cards over links, and by the processor's atomic instructions on mapped memory, if the cards are coherent.

// CardAtomics is experimental. If the cards of all ranks have atomics, they apply the accumulate family, which saves
// processor time of the target. Each element is then a request of its own, so it may take longer. Otherwise only the
// promise below has an effect.
//
// CardAtomics promises that operations of the accumulate family have elements of int64 or uint64 and are Sum, NoOp or
// CompareAndSwap. They may have any number of elements. Others are rejected with an [ErrPromise], on every device.
func CardAtomics() Option {
	return func(s *settings) error { s.CardAtomics = true; return nil }
}

// ability is the set of what a rank, or each rank of a window, can do for CardAtomics.
type ability uint32

const (
	// cardHasAtomics: its network card has atomics, and applies them to its part.
	cardHasAtomics ability = 1 << iota
	// cardIsCoherent: these are coherent with those of its processor.
	cardIsCoherent
	// mapsNobody: it maps the memory of no other rank.
	mapsNobody

	allAbilities = cardHasAtomics | cardIsCoherent | mapsNobody
)

// abilityOf returns the ability of this rank with a part.
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

// cardUse is the share of cards in the accumulate family on a window.
type cardUse uint8

const (
	// cardsUnused: nothing.
	cardsUnused cardUse = iota
	// cardsOverLinks: operations over links. On mapped memory the processor applies them by its atomics.
	cardsOverLinks
	// cardsAlone: all operations.
	cardsAlone
)

// cardUseOf returns the use that fits what all ranks of a window can do. Memory of the programs, which Create has, may
// be reached by system calls, unless no rank maps another.
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

// useCards chooses the use of cards by the descriptions of all ranks.
func (c *core) useCards(all []description, allocated bool) {
	if !c.hints.CardAtomics {
		return
	}
	common := allAbilities
	for rank := range all {
		common &= all[rank].ability
	}
	// Other ranks may have the window already, and send the operations that they do not leave to cards.
	switch c.cards = cardUseOf(common, allocated); c.cards {
	case cardsOverLinks:
		c.native = true
	case cardsAlone:
		c.remote = true
	}
}

// kernelsOf returns the kernels by which a view of this window applies operations at once. An operation without a
// kernel takes the slow path.
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

// refuseKind returns the error that rejects the accumulate family of a kind on a window made with CardAtomics.
func refuseKind(kind reduce.Kind) error {
	if kind == reduce.Int64 || kind == reduce.Uint64 {
		return nil
	}
	return fmt.Errorf("%w: the window was made with CardAtomics, which are of %v and %v, this is of %v", ErrPromise, reduce.Int64, reduce.Uint64, kind)
}

// refuseAtomic returns the error by which such a window rejects an accumulate.
func (v *view) refuseAtomic(op Op) error {
	if err := refuseKind(v.kind); err != nil {
		return err
	}
	for _, has := range cardOps {
		if op == has {
			return nil
		}
	}
	return fmt.Errorf("%w: the window was made with CardAtomics, which are %v, %v and CompareAndSwap, this is %v", ErrPromise, Sum, NoOp, op)
}

// through returns the peer for an operation of the accumulate family on a rank. If cards alone apply them, a peer whose
// part is mapped gets a link at first use.
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
