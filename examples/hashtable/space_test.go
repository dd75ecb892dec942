package hashtable

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// surplus keeps twice the number of pieces that were used lately, even if it is called again at once. It removes the
// others.
func TestSurplus(t *testing.T) {
	const words, pieces = 12, 1000
	var s space
	for i := range pieces {
		s.give(piece{i * words, words})
	}
	use := func(n int) {
		for range n {
			place, ok := s.take(words)
			assert.True(t, ok)
			s.give(piece{place, words})
		}
	}
	kept := func() int {
		s.surplus(pieces * words)
		assert.EqualValues(t, s.idle.Load(), words*len(s.pile(words).places))
		return len(s.pile(words).places)
	}
	use(400)
	assert.Equal(t, 800+alwaysKept, kept(), "in front of the first look")
	assert.Equal(t, 800+alwaysKept, kept(), "right behind it")
	use(100)
	assert.Equal(t, 200+alwaysKept, kept(), "less is used")
	use(10)
	assert.Equal(t, 200+alwaysKept, kept(), "still less")
	assert.Equal(t, 20+alwaysKept, kept(), "nothing")
	assert.Equal(t, alwaysKept, kept(), "nothing again")
	for i := range pieces {
		s.give(piece{i * words, words})
	}
	use(400)
	s.surplus(100 * words)
	assert.Len(t, s.pile(words).places, 100+alwaysKept, "more than have most words")
}
