package testsize

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestScale(t *testing.T) {
	for _, c := range []struct {
		n    int
		size float64
		want int
	}{{300, 1, 300}, {300, 0.2, 60}, {3, 0.2, 1}, {1, 0.01, 1}, {300, 20, 6000}, {300, 1e300, math.MaxInt32}} {
		require.Equal(t, c.want, scale(c.n, c.size), "%d times %v", c.n, c.size)
	}
}

func TestPlainOrLarge(t *testing.T) {
	for size, want := range map[string]int{"0.2": 3, "1": 3, "1.5": 7, "20": 7} {
		t.Setenv(sizeVariable, size)
		require.Equal(t, want, PlainOrLarge(3, 7), "size %s", size)
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]float64{"": 1, "20": 20, "0.5": 0.5} {
		got, err := parseSize(text, false)
		require.NoError(t, err)
		require.Equal(t, want, got, "%q", text)
	}
	got, err := parseSize("", true)
	require.NoError(t, err)
	require.Equal(t, short, got)
	got, err = parseSize("3", true)
	require.NoError(t, err)
	require.Equal(t, 3.0, got, "the variable counts more than -short")
	for _, text := range []string{"0", "-1", "much", "NaN", "Inf"} {
		_, err := parseSize(text, false)
		require.EqualError(t, err, `testsize: RMA_TEST_SIZE="`+text+`": must be a positive number`)
	}
}

func TestParseSeed(t *testing.T) {
	for text, want := range map[string]uint64{"": 0, "7": 7, "9223372036854775807": math.MaxInt64} {
		got, err := parseSeed(text)
		require.NoError(t, err)
		require.Equal(t, want, got, "%q", text)
	}
	for _, text := range []string{"-1", "x", "1.5", "9223372036854775808"} {
		_, err := parseSeed(text)
		require.EqualError(t, err, `testsize: RMA_TEST_SEED="`+text+`": must be a whole number from 0 to 9223372036854775807`)
	}
}
