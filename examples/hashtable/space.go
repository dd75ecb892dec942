package hashtable

import (
	"sync"
	"sync/atomic"
)

// A space is what this rank knows of another rank's record space, and the pieces of it that this rank may use.
//
// Space is allocated by an atomic add to the owner's tail word. An add is never taken back: to undo one that passed
// the end could give the same words to two ranks. So the tail passes the end at most once. The rank whose add did
// that keeps the words before the end.
type space struct {
	// seen is a value that the owner's tail has had; the tail is at least that. idle is the number of words in spare
	// and rests. It is mostly 0, which can be read without the lock.
	seen, idle atomic.Int64

	mu sync.Mutex
	// spare holds free pieces, in one pile for each length.
	spare []pile
	// rests holds larger pieces: the one before the end that this rank's add came to cover, and blocks that are too
	// small for an index now.
	rests []piece
}

// A piece is a range of words of record space.
type piece struct{ place, words int }

// A pile holds pieces of one length. used counts the pieces of this length that were used since the last call of
// surplus, from wherever they came. before is that count of the period before.
type pile struct {
	words        int
	used, before int
	places       []int
}

// pile returns the pile for a length.
func (s *space) pile(words int) *pile {
	for i := range s.spare {
		if p := &s.spare[i]; p.words == words {
			return p
		}
	}
	s.spare = append(s.spare, pile{words: words})
	return &s.spare[len(s.spare)-1]
}

// take allocates words from this rank's own pieces.
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

// use records that a piece was used which this rank did not have.
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

// give returns a piece that no operation knows.
func (s *space) give(p piece) {
	s.mu.Lock()
	to := s.pile(p.words)
	to.places = append(to.places, p.place)
	s.idle.Add(int64(p.words))
	s.mu.Unlock()
}

// surplus removes the spare pieces that this rank will probably not need, and returns their offsets by length. It
// keeps twice as many pieces of a length as were used in the last period or the one before, plus alwaysKept. It keeps
// at most most words of a length. Two periods count because two retire lists may be freed in direct succession, with no use
// between them.
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

// alwaysKept is the number of spare pieces of a length that a rank always keeps.
const alwaysKept = 4

// left returns an upper bound of the number of words of capacity that are not allocated.
func (s *space) left(capacity int) int { return capacity - int(min(s.seen.Load(), int64(capacity))) }

// remainder returns the number of words in larger pieces.
func (s *space) remainder() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	words := 0
	for _, rest := range s.rests {
		words += rest.words
	}
	return words
}

// added records that this rank's add of words found the tail at tail, or at capacity if it was beyond that. It
// returns the part of the words that lies within capacity.
func (s *space) added(tail, words, capacity int) piece {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen.Store(max(s.seen.Load(), int64(tail+words)))
	return piece{tail, min(words, capacity-tail)}
}

// keep stores a larger piece.
func (s *space) keep(p piece) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle.Add(int64(p.words))
	s.rests = append(s.rests, p)
}

// saw records a value of the owner's tail.
func (s *space) saw(tail int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen.Store(max(s.seen.Load(), int64(tail)))
}
