package table

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/onesided/rma/bench/internal/stats"
)

func TestNumbers(t *testing.T) {
	for v, want := range map[float64]string{0: "0.0000", 1.23456: "1.2346", 99.5: "99.5000", 100: "100.0", 9999.94: "9999.9", 10000: "10000", 123456.7: "123457"} {
		assert.Equal(t, want, Value(&v))
	}
	ratio := 1.005001
	assert.Equal(t, "1.01", Ratio(&ratio))
	assert.Equal(t, "-", Value(nil))
	assert.Equal(t, "-", Ratio(nil))
}

func TestExtremesAreOfSeveralRounds(t *testing.T) {
	s := stats.NewSeries(3)
	assert.Empty(t, Extremes(s))
	s.Set(0, 1.5)
	assert.Empty(t, Extremes(s))
	s.Set(2, 0.25)
	assert.Equal(t, "0.25-1.50", Extremes(s))
}

func TestGoalMarks(t *testing.T) {
	met, missed := true, false
	assert.Equal(t, "met", GoalMark(&met))
	assert.Equal(t, "MISSED", GoalMark(&missed))
	assert.Empty(t, GoalMark(nil))
}

func TestPlural(t *testing.T) {
	assert.Equal(t, []string{"0 rounds", "1 round", "2 rounds"}, []string{Plural(0, "round"), Plural(1, "round"), Plural(2, "round")})
}

func TestAlign(t *testing.T) {
	for _, test := range []struct {
		name  string
		lines [][]string
		want  string
	}{
		{"numbers to the right", [][]string{{"case", "us"}, {"put", "1.25"}, {"accumulate", "10"}}, "case          us\nput         1.25\naccumulate    10\n"},
		{"no blanks at the end", [][]string{{"a", "b", "c"}, {"long", "", ""}}, "a     b  c\nlong\n"},
		{"a shorter line", [][]string{{"a", "b"}, {"c"}}, "a  b\nc\n"},
	} {
		var b strings.Builder
		Align(&b, test.lines, func(column int) bool { return column == 1 })
		assert.Equal(t, test.want, b.String(), test.name)
	}
	assert.Panics(t, func() { Align(new(strings.Builder), nil, nil) })
}
