package switches

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/bench/internal/toggles"
)

// Every switch has a case, in the order of switches, of a value that it may have and does not have by
// default, and of cases that can be measured so.
func TestEachSwitchHasACase(t *testing.T) {
	all, of := switchCases(), toggles.All()
	require.Len(t, all, len(of))
	for i, e := range all {
		name, value, _ := strings.Cut(e.set, "=")
		require.Equal(t, of[i].Name, name)
		require.Contains(t, of[i].Values[1:], value, e.set)
		s, err := newComparison(e, of[i], &options{rounds: 1, repeat: 1})
		require.NoError(t, err, e.set)
		require.NotEmpty(t, s.rows, e.set)
		for side, o := range s.sides {
			for _, r := range s.rows {
				require.Empty(t, o.Settings.Forbids(r.cell), "%s, value %s", e.set, s.values[side])
			}
		}
	}
	// What was set here holds for the process.
	for _, one := range of {
		require.NoError(t, new(toggles.Settings).Add(one.Name+"="+one.Values[0]))
	}
}

func TestSwitchesThatAreNamedAreCompared(t *testing.T) {
	o, err := parse([]string{"transfer=register", "inline"}, io.Discard)
	require.NoError(t, err)
	require.Len(t, o.comparisons, 2)
	require.Equal(t, "transfer=register", o.comparisons[0].set)
	require.Equal(t, "inline=off", o.comparisons[1].set)
}
