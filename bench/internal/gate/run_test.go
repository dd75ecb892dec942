package gate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/testsize"
)

// A model is a machine whose speed changes, with programs on it. Its clock is virtual.
type model struct {
	random *rand.Rand
	clock  time.Time
	// noise is the size of the noise of a measurement. Every tenth one has ten times as much, and it slows only.
	noise float64
	// most bounds the noise, if it is not 0.
	most float64
	// change is the factor of New by cell, 1 without an entry. fails are errors by side and cell.
	change map[string]float64
	fails  map[string]error
	// once are errors of the first measurement, by side and cell.
	once map[string]error
	// takes is how long a measurement of a cell takes, a second without an entry.
	takes map[string]time.Duration
	// loop is how long a loop takes besides, and loops are those of each measurement.
	loop  time.Duration
	loops []int
	// measured are the measurements by side and cell, before the one that is at work.
	measured map[string]int
	onTurn   func()
}

func newModel(seed uint64, noise float64) *model {
	return &model{random: rand.New(rand.NewPCG(seed, 2)), noise: noise, measured: make(map[string]int)}
}

func (m *model) now() time.Time { return m.clock }

func (m *model) Measure(_ context.Context, side Side, c Cell, loops int) (float64, error) {
	if m.onTurn != nil {
		m.onTurn()
	}
	key := fmt.Sprint(side, " ", c)
	m.measured[key]++
	took := time.Second
	if t, ok := m.takes[c.String()]; ok {
		took = t
	}
	m.clock = m.clock.Add(took + time.Duration(loops)*m.loop)
	m.loops = append(m.loops, loops)
	if err := cmp.Or(m.fails[key], m.once[key]); err != nil {
		delete(m.once, key)
		return 0, err
	}
	if c.Exact {
		return c.value(m.factor(side, c)), nil
	}
	// The machine gets slower and faster by a third within minutes.
	speed := math.Exp(0.3 * math.Sin(m.clock.Sub(time.Time{}).Minutes()))
	noise := math.Abs(m.random.NormFloat64()) * m.noise
	if m.random.IntN(10) == 0 {
		noise *= 10
	}
	if m.most > 0 {
		noise = min(noise, m.most)
	}
	return c.value(speed * math.Exp(noise) * m.factor(side, c)), nil
}

func (m *model) factor(side Side, c Cell) float64 {
	if factor, ok := m.change[c.String()]; ok && side == New {
		return factor
	}
	return 1
}

// value is what a cell with this cost shows.
func (c Cell) value(cost float64) float64 {
	if c.MoreIsBetter {
		return 1000 / cost
	}
	return 1000 * cost
}

// someCells are n cells, every other of them a rate.
func someCells(n int) []Cell {
	cells := make([]Cell, n)
	for i := range cells {
		cells[i] = Cell{Device: "shm", Case: fmt.Sprint("case", i), Size: 8, Loops: 8, MoreIsBetter: i%2 == 1}
	}
	return cells
}

func usualPlan() Plan {
	return Plan{Limit: 0.05, Rounds: 60, Time: 24 * time.Hour, Alarm: 0.01, Miss: 0.05, Seed: 1}
}

// gated is the run of a gate by a model.
func gated(t *testing.T, p Plan, cells []Cell, m *model) []*Row {
	t.Helper()
	rows, err := Run(t.Context(), p, cells, m, m.now, nil)
	require.NoError(t, err)
	require.Len(t, rows, len(cells))
	return rows
}

func TestSlowerCellsAreFound(t *testing.T) {
	for seed := range testsize.Samples(t, 20) {
		slowerCellsAreFound(t, seed)
	}
}

// The noise and the change of the machine's speed within a round are 4 % at most together: less than lies between the limit
// and any of the changes.
func slowerCellsAreFound(t *testing.T, seed uint64) {
	cells := someCells(24)
	m := newModel(seed, 0.02)
	m.most = 0.03
	m.change = map[string]float64{cells[4].String(): 1.15, cells[7].String(): 1.15, cells[8].String(): 1.4, cells[9].String(): 0.7}
	rows := gated(t, usualPlan(), cells, m)
	assert.Equal(t, []*Row{rows[4], rows[7], rows[8]}, Failed(rows))
	assert.InDelta(t, 1.15, rows[7].Judgement.Change, 0.05, "a rate that is lower is a cost that is higher")
	assert.Less(t, rows[7].Median(New), rows[7].Median(Old))
	assert.InDelta(t, 0.7, rows[9].Judgement.Change, 0.05)
	for i, r := range rows {
		if _, changed := m.change[r.String()]; !changed {
			assert.Equal(t, OK, r.Judgement.Verdict, "cell %d: %+v", i, r.Judgement)
		}
		assert.Equal(t, r.Rounds(), m.measured[fmt.Sprint(New, " ", r)], "a decided cell is not measured any more")
		assert.Less(t, r.Rounds(), usualPlan().Rounds, "cell %d was decided late", i)
	}
}

func TestNoisyCellsAreNeitherOKNorSlower(t *testing.T) {
	cells := someCells(3)
	m := newModel(1, 0.5)
	m.change = map[string]float64{cells[1].String(): 1.2}
	for _, r := range gated(t, usualPlan(), cells, m) {
		assert.Equal(t, Noisy, r.Judgement.Verdict)
		assert.Equal(t, 60, r.Rounds(), "what is undecided gets all rounds")
		assert.Greater(t, r.Judgement.Noise, 1.1)
		assert.Greater(t, r.Judgement.Seen, 1.2)
	}
}

// The rates must hold for noise of any distribution, and for a change at which they are largest: the limit.
func TestErrorRates(t *testing.T) {
	p := usualPlan()
	p.Rounds, p.Alarm, p.Miss = 40, 0.2, 0.2
	cells := someCells(5)
	gates := testsize.N(200)
	failed, ok := 0, 0
	for i := range gates {
		m := newModel(testsize.Seed()+uint64(i), 0.03)
		m.change = make(map[string]float64)
		for _, c := range cells {
			m.change[c.String()] = 1.05
		}
		rows := gated(t, p, cells, m)
		if len(Failed(rows)) > 0 {
			failed++
		}
		for _, r := range rows {
			if r.Judgement.Verdict == OK {
				ok++
			}
		}
	}
	// No more than four standard deviations above the rate.
	most := func(n int, rate float64) int {
		return int(float64(n)*rate + 4*math.Sqrt(float64(n)*rate*(1-rate)))
	}
	assert.LessOrEqual(t, failed, most(gates, p.Alarm), "of %d gates; to repeat: %s", gates, testsize.Again(t.Name()))
	assert.LessOrEqual(t, ok, most(gates*len(cells), p.Miss), "of %d cells; to repeat: %s", gates*len(cells), testsize.Again(t.Name()))
}

func TestTimeEndsTheRounds(t *testing.T) {
	cells := someCells(2)
	p := usualPlan()
	p.Time = 30 * time.Minute
	m := newModel(1, 0.5)
	m.takes = map[string]time.Duration{cells[0].String(): 10 * time.Second, cells[1].String(): 20 * time.Second}
	rows := gated(t, p, cells, m)
	assert.Equal(t, Noisy, rows[0].Judgement.Verdict)
	assert.InDelta(t, 30, rows[0].Rounds(), 1, "both cells have the same time")
	assert.InDelta(t, 15, rows[1].Rounds(), 1)
	assert.Less(t, m.clock.Sub(time.Time{}), p.Time+time.Minute)
}

func TestTheEndOfTheTimeIsALook(t *testing.T) {
	cells := someCells(1)
	p := usualPlan()
	p.Time = 11 * 3 * time.Second
	m := newModel(1, 0.001)
	m.change = map[string]float64{cells[0].String(): 1.3}
	r := gated(t, p, cells, m)[0]
	assert.Equal(t, 11, r.Rounds())
	assert.Equal(t, Slower, r.Judgement.Verdict)
}

func TestLoopsFitTheSlice(t *testing.T) {
	p := usualPlan()
	p.Slice, p.Time = 4*time.Second, 20*time.Minute
	for _, c := range []struct {
		loop time.Duration
		want []int // of each round
	}{
		{time.Second, []int{8, 4, 4, 4}},
		{time.Minute, []int{8}}, // which is all the time
		{8 * time.Second, []int{8, 4, 2, 1, 1, 1}},
		{250 * time.Millisecond, []int{8, 8, 8, 8}},
		{100 * time.Millisecond, []int{8, 16, 16, 16}},
		{0, []int{8, 16, 32, 64, 128, 256, 500, 500, 500}},
	} {
		m := newModel(1, 0.5)
		m.loop = c.loop
		gated(t, p, someCells(1), m)
		require.GreaterOrEqual(t, len(m.loops), 3*len(c.want))
		for round, want := range c.want {
			for _, loops := range m.loops[3*round : 3*round+3] {
				assert.Equal(t, want, loops, "%v a loop, round %d", c.loop, round)
			}
		}
	}
}

func TestExactCellsAreMeasuredOnce(t *testing.T) {
	cells := someCells(3)
	for i := range cells {
		cells[i].Exact = true
	}
	m := newModel(1, 0)
	m.change = map[string]float64{cells[0].String(): 1.04, cells[1].String(): 1.06}
	p := usualPlan()
	p.Time = 1 // what is exact takes no round
	rows := gated(t, p, cells, m)
	for i, want := range []Verdict{OK, Slower, OK} {
		assert.Equal(t, want, rows[i].Judgement.Verdict)
		assert.Equal(t, 1, rows[i].Rounds())
	}
	assert.InDelta(t, 1.04, rows[0].Judgement.Change, 1e-9)
	assert.Equal(t, map[string]int{
		"old shm case0:8": 1, "new shm case0:8": 1, "old shm case1:8": 1, "new shm case1:8": 1, "old shm case2:8": 1, "new shm case2:8": 1,
	}, m.measured)
}

func TestFailures(t *testing.T) {
	broken := errors.New("rank 1 of 2 failed")
	lacks := fmt.Errorf("%w: no such case", ErrLacks)
	for _, c := range []struct {
		name           string
		old, copy, new error
		want           Verdict
		fails          bool
	}{
		{"nothing", nil, nil, nil, OK, false},
		{"new", nil, nil, broken, NewFailed, true},
		{"new lacks it", nil, nil, lacks, NewFailed, true},
		{"old", broken, broken, nil, OldFailed, false},
		{"copy", nil, broken, nil, OldFailed, false},
		{"both", broken, broken, broken, OldFailed, false},
		{"old lacks it", lacks, lacks, nil, Missing, false},
		{"old lacks it and new fails", lacks, lacks, broken, Missing, false},
	} {
		for _, exact := range []bool{false, true} {
			if exact && c.name == "copy" {
				continue // there is none
			}
			cells := someCells(2)
			cells[0].Exact = exact
			m := newModel(1, 0.001)
			m.fails = map[string]error{"old shm case0:8": c.old, "copy shm case0:8": c.copy, "new shm case0:8": c.new}
			rows := gated(t, usualPlan(), cells, m)
			assert.Equal(t, c.want, rows[0].Judgement.Verdict, c.name)
			assert.Equal(t, c.want != OK, rows[0].Err != nil, c.name)
			assert.Equal(t, c.fails, len(Failed(rows)) > 0, c.name)
			assert.Equal(t, OK, rows[1].Judgement.Verdict, "%s: the others go on", c.name)
		}
	}
}

func TestAFailedMeasurementIsRepeatedOnce(t *testing.T) {
	broken := errors.New("rank 1 of 2 failed")
	for _, side := range []string{"old", "copy", "new"} {
		key := side + " shm case0:8"
		m := newModel(1, 0.001)
		m.once = map[string]error{key: broken}
		r := gated(t, usualPlan(), someCells(1), m)[0]
		assert.Equal(t, OK, r.Judgement.Verdict, side)
		assert.NoError(t, r.Err)
		assert.EqualError(t, r.Once, side+": rank 1 of 2 failed")
		assert.Equal(t, r.Rounds()+1, m.measured[key])

		m = newModel(1, 0.001)
		m.fails = map[string]error{key: broken}
		r = gated(t, usualPlan(), someCells(1), m)[0]
		assert.NotEqual(t, OK, r.Judgement.Verdict, side)
		assert.Equal(t, 2, m.measured[key])
		assert.NoError(t, r.Once)
	}
	m := newModel(1, 0.001)
	m.fails = map[string]error{"old shm case0:8": ErrLacks}
	gated(t, usualPlan(), someCells(1), m)
	assert.Equal(t, 1, m.measured["old shm case0:8"], "a program that lacks a cell lacks it again")
}

func TestWhatIsNoValueFails(t *testing.T) {
	for _, value := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		rows, err := Run(t.Context(), usualPlan(), someCells(1), constant(value), time.Now, nil)
		require.NoError(t, err)
		assert.Equal(t, OldFailed, rows[0].Judgement.Verdict)
		assert.EqualError(t, rows[0].Err, fmt.Sprintf("%v is no value", value))
	}
}

type constant float64

func (c constant) Measure(context.Context, Side, Cell, int) (float64, error) { return float64(c), nil }

func TestAGateEndsWithItsContext(t *testing.T) {
	why := errors.New("interrupt")
	for _, exact := range []bool{false, true} {
		ctx, cancel := context.WithCancelCause(t.Context())
		m := newModel(1, 0.5)
		runs := 0
		m.onTurn = func() {
			if runs++; runs == 4 {
				cancel(why)
			}
		}
		cells := someCells(3)
		for i := range cells {
			cells[i].Exact = exact
		}
		_, err := Run(ctx, usualPlan(), cells, m, m.now, nil)
		assert.ErrorIs(t, err, why)
		assert.Equal(t, 4, runs)
	}
}
