package gate

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// around are n logarithms of changes around a factor, as wide as a part of it.
func around(factor, width float64, n int) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = math.Log(factor) + width*(float64(i)-float64(n-1)/2)/float64(n)*2
	}
	return values
}

func TestVerdicts(t *testing.T) {
	l := level{limit: 0.05, alarm: 1e-4, miss: 0.01}
	for _, c := range []struct {
		name          string
		change, noise []float64
		last          bool
		want          Verdict
		says          string
	}{
		{"equal", around(1, 0.02, 20), around(1, 0.02, 20), false, OK, "ok"},
		{"faster", around(0.5, 0.02, 20), around(1, 0.02, 20), false, OK, "ok"},
		{"faster and few rounds", around(0.5, 0.02, 8), around(1, 0.02, 8), false, OK, "ok"},
		{"slower", around(1.2, 0.02, 20), around(1, 0.02, 20), false, Slower, "SLOWER"},
		{"much slower despite noise", around(3, 0.5, 20), around(1, 0.5, 20), false, Slower, "SLOWER"},
		{"slower and few rounds", around(1.2, 0.02, 13), around(1, 0.02, 13), false, Undecided, "undecided"},
		{"slower and few rounds at the end", around(1.2, 0.02, 13), around(1, 0.02, 13), true, Noisy, "too few rounds to tell at 5 %"},
		{"at the limit", around(1.05, 0.02, 20), around(1, 0.02, 20), false, Undecided, "undecided"},
		{"at the limit at the end", around(1.05, 0.02, 20), around(1, 0.02, 20), true, Near, "too near to 5 % to tell"},
		{"noisy", around(1.1, 0.5, 20), around(1, 0.5, 20), true, Noisy, "too noisy to tell at 5 %; sees 45.3 %"},
		{"differs from itself", around(1.2, 0.02, 20), around(1.2, 0.02, 20), true, Unsound, "old differs from itself"},
		{"equal, and differs from itself", around(1, 0.02, 20), around(0.8, 0.02, 20), true, Unsound, "old differs from itself"},
		{"no round", nil, nil, true, Noisy, "too few rounds to tell at 5 %"},
	} {
		j := l.judge(c.change, c.noise, c.last)
		assert.Equal(t, c.want, j.Verdict, "%s: %+v", c.name, j)
		assert.Equal(t, c.says, j.Says(l.limit), c.name)
	}
}

func TestJudgementsTellWhatWouldHaveBeenSeen(t *testing.T) {
	l := level{limit: 0.05, alarm: 1e-3, miss: 0.01}
	j := l.judge(around(1, 0.2, 20), around(1, 0.2, 20), true)
	assert.Equal(t, Noisy, j.Verdict)
	assert.Equal(t, Undecided, l.judge(around(j.Seen*0.999, 0.2, 20), around(1, 0.2, 20), false).Verdict)
	assert.Equal(t, Slower, l.judge(around(j.Seen*1.001, 0.2, 20), around(1, 0.2, 20), false).Verdict)
}

func TestExactVerdicts(t *testing.T) {
	for change, want := range map[float64]Verdict{0.2: OK, 1: OK, 1.05: OK, 1.0500001: Slower, 2: Slower} {
		assert.Equal(t, want, level{limit: 0.05}.judgeExact(change).Verdict, "%v", change)
	}
}

func TestLooks(t *testing.T) {
	for rounds, want := range map[int][]int{
		1: {1}, 8: {8}, 9: {8, 9}, 12: {8, 12}, 60: {8, 12, 18, 27, 40, 60}, 61: {8, 12, 18, 27, 40, 60, 61},
	} {
		assert.Equal(t, want, Plan{Rounds: rounds}.looks(), "%d rounds", rounds)
	}
}

func TestErrorsAddUp(t *testing.T) {
	p := Plan{Rounds: 60, Alarm: 0.01, Miss: 0.05}
	alarm, miss := p.errorsAt(23)
	assert.InDelta(t, p.Alarm, alarm*23*6, 1e-12)
	assert.InDelta(t, p.Miss, miss*6, 1e-12)
	assert.Equal(t, 14, p.Fewest(23))
}

func TestPlansThatCannotDecide(t *testing.T) {
	p := Plan{Limit: 0.05, Rounds: 60, Time: time.Minute, Alarm: 0.01, Miss: 0.05}
	assert.NoError(t, p.Check(23))
	short, endless, lax := p, p, p
	short.Rounds, endless.Time, lax.Limit = 10, 0, math.NaN()
	assert.EqualError(t, short.Check(23), "10 rounds are too few: 23 cells need 13 before one can be told to be slower")
	assert.NoError(t, short.Check(0), "exact cells need no rounds")
	assert.EqualError(t, endless.Check(23), "the time must be above 0")
	assert.EqualError(t, lax.Check(23), "the limit must be above 0 %")
}

func TestOrdersAreAllOrders(t *testing.T) {
	distinct := slices.Clone(orders[:])
	slices.SortFunc(distinct, func(a, b [sides]Side) int { return slices.Compare(a[:], b[:]) })
	assert.Len(t, slices.Compact(distinct), 6)
	for _, order := range distinct {
		assert.ElementsMatch(t, []Side{Old, Copy, New}, order)
	}
}
