package job

import (
	"sync"

	"github.com/onesided/rma/verbs"
)

// slots are registered memory of one length each: letters for messages on their way out, or stages
// for what goes through them because the card does not know its memory. They are made some at a time
// when none is free, and kept.
type slots struct {
	cards  *[cardKinds]*card
	length int
	// most is how many there are at most, 0 for as many as are wanted.
	most int

	mu   sync.Mutex
	free []slot
	// made is how many there are, taken how many of them are not free.
	made, taken int
	// full tells that there is no memory for more.
	full bool
}

// A slot is one of them. The zero value is none.
type slot struct {
	memory []byte
	region *Region
	of     *slots
}

const (
	// A slab is what is registered together: so many bytes, or so many slots if that is more and
	// they are short.
	slabSlots = 8
	slabBytes = 64 << 10
	// mostTaken slots are held until something else tells that their requests have completed.
	// With more, or more than half of all that there may be, each has its own completion heard of.
	mostTaken = 32
)

func (s *slot) lkey(kind cardKind) uint32 { return s.region.lkey(kind) }

// take gives a slot, none if there are as many as there may be, and tells whether they are scarce.
func (s *slots) take() (taken slot, scarce bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.free) == 0 {
		if s.most > 0 && s.made >= s.most {
			return slot{}, true, nil
		}
		err := s.more()
		switch {
		case err != nil && s.most > 0 && s.made > 0:
			// There are no more to be had.
			s.most = s.made
			return slot{}, true, nil
		case err != nil:
			return slot{}, false, err
		}
	}
	taken = s.pop()
	return taken, s.taken > mostTaken || s.most > 0 && 2*s.taken > s.most, nil
}

// takeSpare is take by one who can wait, where there may be no memory for more: half of them are left
// for those who cannot. All that are taken so are scarce.
func (s *slots) takeSpare() (taken slot, scarce bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if 2*s.taken >= s.made {
		if s.full {
			return slot{}, true, nil
		}
		if err := s.more(); err != nil {
			if s.made == 0 {
				return slot{}, false, err
			}
			s.full = true
			return slot{}, true, nil
		}
	}
	return s.pop(), true, nil
}

// pop takes one of those that are free. It is called with the mutex.
func (s *slots) pop() slot {
	last := len(s.free) - 1
	taken := s.free[last]
	s.free = s.free[:last]
	s.taken++
	return taken
}

// more makes some.
func (s *slots) more() error {
	n := max(slabBytes/s.length, 1)
	if s.length <= slabBytes {
		n = max(n, slabSlots)
	}
	slab := make([]byte, n*s.length)
	region, err := register(s.cards, slab, verbs.LocalWrite)
	if err != nil {
		return err
	}
	for i := range n {
		s.free = append(s.free, slot{slab[i*s.length:][:s.length:s.length], region, s})
	}
	s.made += n
	return nil
}

// put gives a slot back.
func (s *slot) put() {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.of.free = append(s.of.free, *s)
	s.of.taken--
}
