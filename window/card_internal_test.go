package window

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCardUse: all has to go one way for whatever reaches the same word.
func TestCardUse(t *testing.T) {
	for _, c := range []struct {
		all       ability
		allocated bool
		want      cardUse
	}{
		{0, true, cardsUnused},
		{cardIsCoherent | mapsNobody, true, cardsUnused},
		{cardHasAtomics, true, cardsAlone},
		{cardHasAtomics, false, cardsUnused},
		{cardHasAtomics | mapsNobody, true, cardsAlone},
		{cardHasAtomics | mapsNobody, false, cardsAlone},
		{cardHasAtomics | cardIsCoherent, true, cardsOverLinks},
		{cardHasAtomics | cardIsCoherent, false, cardsUnused},
		{cardHasAtomics | cardIsCoherent | mapsNobody, false, cardsOverLinks},
		{allAbilities, true, cardsOverLinks},
	} {
		require.Equal(t, c.want, cardUseOf(c.all, c.allocated), "%b, %v", c.all, c.allocated)
	}
}
