package testsize

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// logged is a test that records its log and its cleanups.
type logged struct {
	testing.TB
	failed bool
	lines  []string
	ends   []func()
}

func (l *logged) Failed() bool { return l.failed }
func (l *logged) Logf(format string, values ...any) {
	l.lines = append(l.lines, fmt.Sprintf(format, values...))
}
func (l *logged) Cleanup(end func()) { l.ends = append(l.ends, end) }
func (l *logged) Skipped() bool      { return false }
func (l *logged) Name() string       { return "TestX/a_(b)/it's" }

const pattern = `'^TestX$/^a_\(b\)$/^it.s$'`

func TestReplay(t *testing.T) {
	require.Equal(t, `RMA_TEST_SEED=7 RMA_TEST_SIZE=0.5 go test `+Either("", "-race ")+`./internal/testsize -run `+pattern, Replay(new(logged).Name(), 7, 0.5))
	t.Setenv(sizeVariable, "3")
	require.Equal(t, fmt.Sprintf(`RMA_TEST_SEED=%d RMA_TEST_SIZE=3 go test `+Either("", "-race ")+`./internal/testsize -run '^TestX$'`, Seed()), Again("TestX"))
}

func TestSamples(t *testing.T) {
	t.Setenv(sizeVariable, "1")
	first := Seed()
	require.Equal(t, []uint64{first, first + 1, first + 2}, slices.Collect(Seeds(3)))
	l := new(logged)
	require.Equal(t, []uint64{first, first + 1, first + 2}, slices.Collect(Samples(l, 3)))
	require.Empty(t, l.lines, "the test has not failed")
	for seed := range Samples(l, 3) {
		l.failed = seed > first
	}
	require.Equal(t, []string{"to repeat: " + Replay(l.Name(), first+1, Least)}, l.lines)
	l = new(logged)
	require.Panics(t, func() {
		for seed := range Samples(l, 3) {
			if seed == first+2 {
				panic("a sample")
			}
		}
	})
	require.Equal(t, []string{"to repeat: " + Replay(l.Name(), first+2, Least)}, l.lines)
}

func TestRandom(t *testing.T) {
	one, two, other := new(logged), new(logged), new(logged)
	drawn := Random(one, 1).Uint64()
	require.Equal(t, drawn, Random(two, 1).Uint64())
	require.NotEqual(t, drawn, Random(other, 2).Uint64())
	two.failed = true
	one.ends[0]()
	two.ends[0]()
	require.Empty(t, one.lines, "the test has not failed")
	require.Equal(t, []string{"to repeat: " + Again(two.Name())}, two.lines)
}

func TestTurns(t *testing.T) {
	const n = 5
	for size, tried := range map[string]int{"0.1": 1, "1": 1, "2": 2, "5": n, "100": n} {
		t.Setenv(sizeVariable, size)
		var some []int
		for i := range n {
			if Turn(i, n) {
				some = append(some, i)
			}
		}
		require.Len(t, some, tried, "size %s", size)
		for turn := range n {
			all := Turns(turn, n, 1)
			require.Len(t, all, tried, "size %s", size)
			require.Equal(t, (turn+int(Seed()%n))%n, all[0], "size %s", size)
			slices.Sort(all)
			require.Len(t, slices.Compact(all), tried, "size %s: a case is tried twice", size)
		}
	}
	t.Setenv(sizeVariable, "1")
	require.Len(t, Turns(0, n, 3), 3)
}
