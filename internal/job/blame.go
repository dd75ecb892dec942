package job

import "github.com/onesided/rma/internal/bootstrap/pmi"

// A blamer tells the launcher which rank this one blames: a rank that has failed, or that has left while this one needed it. If
// this rank fails, too, that may be why. A rank blames one other at a time. Shrink tells the launcher that this rank blames none
// any more, because it goes on without those that are gone. The World that Shrink gives has a blamer of its own.
//
// What others do while this rank closes its World does it no harm, and a rank whose own body has failed blames no other: the
// launcher is not told.
//
// It is guarded by the mutex of the roster.
type blamer struct {
	world *World
	// tell gives the launcher a rank of the World, or [pmi.NoRank].
	tell func(rank int, left bool)
	said blame
}

// A blame is how much a rank is to blame. A rank that has left may have had every right to. So a rank that fails is blamed in its
// place.
type blame uint8

const (
	blamesNone blame = iota
	blamesLeaver
	blamesFailed
)

// accuse blames a rank, unless this rank blames another as much or more.
func (b *blamer) accuse(rank int, is blame) {
	if b == nil || is <= b.said || b.world.closed.Load() {
		return
	}
	b.said = is
	if rank != b.world.rank {
		b.tell(rank, is == blamesLeaver)
	}
}

// blameBy has tell called with the ranks that this one blames, until the World ends. If a rank has failed already, tell is called
// at once.
func (w *World) blameBy(tell func(rank int, left bool)) {
	w.roster.setBlamer(&blamer{world: w, tell: tell})
	end := w.end
	w.end = func() { w.roster.setBlamer(nil); end() }
}

// blameIn has the launcher forget the rank that this one blames in w. From then on it is told which rank this one blames in the World
// of the survivors.
func (w *World) blameIn(small *World, survivors []survivor) {
	b := w.roster.setBlamer(nil)
	if b == nil {
		return
	}
	if b.said != blamesNone {
		b.tell(pmi.NoRank, false)
	}
	small.blameBy(func(rank int, left bool) {
		if rank != pmi.NoRank {
			rank = survivors[rank].rank
		}
		b.tell(rank, left)
	})
}

// blameNoMore ends what blameBy has begun, in w and in the Worlds that Shrink has made of it. If this rank has failed by
// itself, the launcher forgets the rank that this one blames: what the rank has seen of others is not why it fails.
func (w *World) blameNoMore(byItself bool) {
	if b := w.roster.setBlamer(nil); byItself && b != nil && b.said != blamesNone {
		b.tell(pmi.NoRank, false)
	}
	w.post.mu.Lock()
	small := w.small
	w.post.mu.Unlock()
	if small != nil {
		small.blameNoMore(byItself)
	}
}

// setBlamer gives the roster a blamer, or none, and returns the one that it had.
func (r *roster) setBlamer(b *blamer) (before *blamer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, r.blamer = r.blamer, b
	if len(r.order) > 0 {
		b.accuse(r.order[0].Rank, blamesFailed)
	}
	return before
}
