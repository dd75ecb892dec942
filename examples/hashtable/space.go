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
	// used counts the pieces of each size that were used, wherever they came from.
	used [classes]atomic.Uint32

	mu sync.Mutex
	// spare are free pieces, by their length.
	spare map[int][]int
	// rests are larger pieces: the one before the end that this rank's add came to cover, and
	// blocks of indexes that are too small now.
	rests []piece
}

// A piece is some words of record space.
type piece struct{ place, words int }

// take gives words out of this rank's own pieces.
func (s *space) take(words int) (place int, ok bool) {
	if s.idle.Load() < int64(words) {
		return 0, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if places := s.spare[words]; len(places) > 0 {
		s.spare[words] = places[:len(places)-1]
		place = places[len(places)-1]
	} else if place, ok = s.cut(words); !ok {
		return 0, false
	}
	s.idle.Add(-int64(words))
	return place, true
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
	defer s.mu.Unlock()
	if s.spare == nil {
		s.spare = make(map[int][]int)
	}
	s.spare[p.words] = append(s.spare[p.words], p.place)
	s.idle.Add(int64(p.words))
}

// surplus takes away what this rank is not likely to need of the spare pieces, by their lengths: it keeps twice as
// many of a length as it has used since the last time, and a few, but not more of a length than have most words.
func (s *space) surplus(most int) map[int][]uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	var surplus map[int][]uint32
	for words, places := range s.spare {
		keep := min(2*int(s.used[class(words)].Swap(0)), most/words) + alwaysKept
		if len(places) <= keep {
			continue
		}
		if surplus == nil {
			surplus = make(map[int][]uint32)
		}
		for _, place := range places[keep:] {
			surplus[words] = append(surplus[words], uint32(place))
		}
		s.idle.Add(-int64(words * (len(places) - keep)))
		s.spare[words] = places[:keep]
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
