package paper

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/bench/internal/golden"
	"github.com/onesided/rma/verbs/sim"
)

// scriptedPlots are figures of part A with curves that are given.
func scriptedPlots(t *testing.T, values map[string][2][]float64) []*Plot {
	t.Helper()
	var plots []*Plot
	for _, f := range Figures() {
		given, ok := values[f.Name()]
		if !ok {
			continue
		}
		f.xs = []int{4, 1024, 1 << 20}
		calls := 0
		f.measure = func(context.Context, *Figure, *curve, *Options) ([]float64, error) {
			calls++
			return given[calls-1], nil
		}
		p, err := f.Reproduce(t.Context(), &Options{})
		require.NoError(t, err)
		plots = append(plots, p)
	}
	require.Len(t, plots, len(values))
	return plots
}

func usualPlots(t *testing.T) []*Plot {
	return scriptedPlots(t, map[string][2][]float64{
		"A7a":  {{10, 500, 960}, {10, 600, 1600}},
		"A7b":  {{10, 420, 873.25}, {11, 536, 918}},
		"A8a":  {{25, 29.2, 4384}, {24.125, 26.5, 4400}},
		"A10a": {{12.0681, 13.1261, 29.0884}, {5.1899, 7.328, 29.0884}},
	})
}

func TestPaperAsText(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, writeText(&b, usualPlots(t), true))
	golden.Check(t, "testdata/paper.golden", b.String())
}

func TestPaperAsJSON(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, writeJSON(&b, usualPlots(t), false))
	golden.Check(t, "testdata/paper.json.golden", b.String())
	for line := range strings.Lines(b.String()) {
		var p Plot
		require.NoError(t, json.Unmarshal([]byte(line), &p))
		assert.Len(t, p.Curves, 2)
		assert.Len(t, p.Curves[1].Values, len(p.X))
	}
}

func TestClaimsAreJudgedByTheirKind(t *testing.T) {
	for _, test := range []struct {
		name   string
		claim  claim
		ours   float64
		within bool
		reason bool
	}{
		{"as much", claim{theirs: 40}, 40, true, false},
		{"a fifth less", claim{theirs: 40}, 32.01, true, false},
		{"less than that", claim{theirs: 40}, 31.9, false, false},
		{"less than that, whatever reason there is for more", claim{theirs: 40, beyond: "so"}, 31.9, false, false},
		{"a fifth more", claim{theirs: 40, beyond: "so"}, 47.9, true, false},
		{"more than that", claim{theirs: 40}, 48.1, false, false},
		{"more than that, for a reason", claim{theirs: 40, beyond: "so"}, 60, true, true},
		{"a loss that is less", claim{theirs: 40, kind: loss}, 31.9, false, false},
		{"a loss that is less, for a reason", claim{theirs: 40, kind: loss, beyond: "so"}, 31.9, true, true},
		{"a loss that is more, whatever reason there is for less", claim{theirs: 40, kind: loss, beyond: "so"}, 48.1, false, false},
		{"no more", claim{theirs: 5, kind: noMore}, 5, true, false},
		{"more", claim{theirs: 5, kind: noMore}, 5.1, false, false},
		{"less", claim{theirs: 5, kind: less}, 4.9, true, false},
		{"not less", claim{theirs: 5, kind: less}, 5, false, false},
		{"stated without a word of the paper", claim{kind: unstated}, 7, true, false},
		{"not behind", claim{kind: noLess}, 0, true, false},
		{"behind by what is not printed", claim{kind: noLess}, -0.002, true, false},
		{"behind", claim{kind: noLess}, -0.1, false, false},
		{"the same", claim{kind: asGood}, -0.9, true, false},
		{"not the same", claim{kind: asGood}, 1.1, false, false},
	} {
		v := test.claim.judge(test.ours)
		assert.Equal(t, test.within, v.Within, test.name)
		assert.Equal(t, test.reason, v.Reason != "", test.name)
	}
}

func TestEachFigureIsWholeAndOfAProfile(t *testing.T) {
	var ids []string
	for _, f := range Figures() {
		assert.NotContains(t, ids, f.Name())
		ids = append(ids, f.Name())
		_, err := sim.ByName(f.profile)
		require.NoError(t, err)
		assert.GreaterOrEqual(t, len(f.curves), 2, f.Name())
		assert.True(t, slices.IsSorted(f.xs), f.Name())
		for _, c := range f.claims {
			assert.NotEmpty(t, c.source, "%s of %s", c.name, f.Name())
			assert.NotNil(t, c.of, "%s of %s", c.name, f.Name())
		}
	}
}

func TestSizesInSteps(t *testing.T) {
	assert.Equal(t, []int{1000, 1050, 1102, 1103, 1157}, inSteps([]int{1000, 1103, 1160}, 1.05)[:5])
}

func TestWhatIsOffIsAnError(t *testing.T) {
	plots := usualPlots(t)
	assert.NoError(t, offAmong(plots[:1]))
	err := offAmong(plots)
	assert.ErrorIs(t, err, errOff)
	assert.EqualError(t, err, "bench: 4 of 12 cases off")

	told := &Plot{Verdicts: []verdict{(&claim{name: "time", kind: unstated}).judge(7)}}
	assert.Equal(t, "-", told.Verdicts[0].word())
	assert.EqualError(t, offAmong(append(plots, told)), "bench: 4 of 12 cases off", "what no paper tells is none")
}

func TestPaperThatEndsEarlyHasTheFiguresBefore(t *testing.T) {
	o := &Options{figures: Figures()[:3]}
	for i, f := range o.figures {
		f.measure = func(context.Context, *Figure, *curve, *Options) ([]float64, error) {
			if i == 2 {
				return nil, context.Canceled
			}
			return slices.Repeat([]float64{1}, len(f.xs)), nil
		}
	}
	plots, err := o.measure(t.Context(), func(string) {})
	assert.ErrorIs(t, err, context.Canceled)
	assert.Len(t, plots, 2)
}
