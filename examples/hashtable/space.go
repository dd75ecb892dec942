package hashtable

import (
	"sync"
	"sync/atomic"
)

// A space is what this rank knows of the record space of another, and the pieces of it
// that are this rank's to use.
//
// Space is allocated by an atomic add to the owner's tail word, which is never
// taken back: an add that came to lie beyond the end could not be undone without
// giving the same words to two ranks. So the tail passes the end at most once
// for good, and what lies between is kept by the rank whose add it was.
type space struct {
	// seen is a tail that the owner has had; its tail is that or more. idle is how
	// many words spare and rest have: mostly none, which is known without the lock.
	seen, idle atomic.Int64

	mu sync.Mutex
	// spare are free pieces, those of a length on a pile.
	spare []pile
	// rests are larger pieces: the one before the end that this rank's add came to cover, and
	// blocks of indexes that are too small now.
	rests []piece
}

// A piece is some words of record space.
type piece struct{ place, words int }

// A pile has pieces of one length. used counts those of this length that were used since it was looked at, wherever they
// came from, and before has that of the time before.
type pile struct {
	words        int
	used, before int
	places       []int
}

// pile is that of a length.
func (s *space) pile(words int) *pile {
	for i := range s.spare {
		if p := &s.spare[i]; p.words == words {
			return p
		}
	}
	s.spare = append(s.spare, pile{words: words})
	return &s.spare[len(s.spare)-1]
}

// take gives words out of this rank's own pieces.
func (s *space) take(words int) (place int, ok bool) {
	if s.idle.Load() < int64(words) {
		return 0, false
	}
	s.mu.Lock()
	p := s.pile(words)
	if last := len(p.places) - 1; last >= 0 {
		place, ok = p.places[last], true
		p.places = p.places[:last]
	} else {
		place, ok = s.cut(words)
	}
	if ok {
		p.used++
		s.idle.Add(-int64(words))
	}
	s.mu.Unlock()
	return place, ok
}

// use takes note that a piece is used which this rank did not have.
func (s *space) use(words int) {
	s.mu.Lock()
	s.pile(words).used++
	s.mu.Unlock()
}

// cut takes words from one of the larger pieces.
func (s *space) cut(words int) (place int, ok bool) {
	for i := range s.rests {
		if rest := &s.rests[i]; rest.words >= words {
			place = rest.place
			rest.place += words
			rest.words -= words
			return place, true
		}
	}
	return 0, false
}

// give returns a piece that nobody knows.
func (s *space) give(p piece) {
	s.mu.Lock()
	to := s.pile(p.words)
	to.places = append(to.places, p.place)
	s.idle.Add(int64(p.words))
	s.mu.Unlock()
}

// surplus takes away what this rank is not likely to need of the spare pieces, by their lengths: it keeps twice as
// many of a length as it has used since the last time or between the two before, and a few, but not more of a length than have most
// words. Two bags may come free one right after the other: that nothing was used in between tells nothing.
func (s *space) surplus(most int) map[int][]uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	var surplus map[int][]uint32
	for i := range s.spare {
		p := &s.spare[i]
		keep := min(2*max(p.used, p.before), most/p.words) + alwaysKept
		p.used, p.before = 0, p.used
		if len(p.places) <= keep {
			continue
		}
		if surplus == nil {
			surplus = make(map[int][]uint32)
		}
		for _, place := range p.places[keep:] {
			surplus[p.words] = append(surplus[p.words], uint32(place))
		}
		s.idle.Add(-int64(p.words * (len(p.places) - keep)))
		p.places = p.places[:keep]
	}
	return surplus
}

// alwaysKept is how many spare pieces of a length a rank keeps in any case.
const alwaysKept = 4

// left is a bound on how many words of capacity are not allocated.
func (s *space) left(capacity int) int { return capacity - int(min(s.seen.Load(), int64(capacity))) }

// remainder is how many words this rank has of larger pieces.
func (s *space) remainder() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	words := 0
	for _, rest := range s.rests {
		words += rest.words
	}
	return words
}

// added takes note that this rank's add of words found the tail at tail, which is
// capacity if it was beyond, and gives the part of the words that lies within capacity.
func (s *space) added(tail, words, capacity int) piece {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen.Store(max(s.seen.Load(), int64(tail+words)))
	return piece{tail, min(words, capacity-tail)}
}

// keep puts by a larger piece.
func (s *space) keep(p piece) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle.Add(int64(p.words))
	s.rests = append(s.rests, p)
}

// saw takes note that the owner's tail was there.
func (s *space) saw(tail int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen.Store(max(s.seen.Load(), int64(tail)))
}
