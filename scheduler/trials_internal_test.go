package scheduler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A pair of blocks costs what its candidate took longer, the epochs before blocks of one included, and an interruption
// of either block counts little.
func TestCostOfPairs(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name            string
		size            uint8
		best, candidate time.Duration
		lost            time.Duration
	}{
		{"slower, blocks of one", 0, 5 * ms, 6 * ms, 2 * ms},
		{"faster, blocks of one", 0, 6 * ms, 5 * ms, -2 * ms},
		{"interrupted candidate", 0, 5 * ms, 2000 * ms, 20 * ms},
		{"interrupted best", 0, 2000 * ms, 5 * ms, 0},
		{"slower, long blocks", mostEpochs, ms / 10, ms / 5, ms / 10},
		{"faster, long blocks", mostEpochs, ms / 5, ms / 10, -ms / 10},
		{"slower, epochs became long", mostEpochs, 6 * ms, 12 * ms, 2 * longBlock},
		{"faster, epochs became long", mostEpochs, 12 * ms, 6 * ms, 0},
	} {
		at := newTrials(Pattern{}, All)
		at.relevant, at.size = All, c.size
		at.blocks = firstBlocks
		at.try(All)
		require.NotEqual(t, uint8(none), at.trying, c.name)
		at.block = 2 * shortPairs
		took := map[bool]time.Duration{true: c.candidate, false: c.best}
		first := at.candidateFirst()
		require.Zero(t, at.measured(took[first]), c.name)
		require.Equal(t, c.lost, at.measured(took[!first]), c.name)
	}
}
