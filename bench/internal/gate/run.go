package gate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// A Cell is a case at a size on a device.
type Cell struct {
	Device, Case string
	Size         int
	Unit         string
	MoreIsBetter bool // of the unit
	// Exact is set if the value has no noise, so that one measurement is enough.
	Exact bool
	// Loops is the number of loops of the first measurement. The best of them counts.
	Loops int
}

// String returns the cell as a command line names it: device, case and size.
func (c Cell) String() string { return fmt.Sprintf("%s %s:%d", c.Device, c.Case, c.Size) }

// cost returns the logarithm of a value of the cell as a cost: more is worse.
func (c Cell) cost(value float64) float64 {
	if c.MoreIsBetter {
		return -math.Log(value)
	}
	return math.Log(value)
}

// ErrLacks is the error of a program that does not know a cell, or measures it in another unit.
var ErrLacks = errors.New("the program does not have the cell")

// A Runner measures cells.
type Runner interface {
	// Measure measures a cell with the program of a side, and returns the best of loops loops. The error is ErrLacks,
	// or why the measurement failed.
	Measure(ctx context.Context, side Side, c Cell, loops int) (float64, error)
}

// A Row is the result for a cell.
type Row struct {
	Cell
	Judgement Judgement
	// Values has one value of each round for each side. An exact cell has none for Copy.
	Values [sides][]float64
	// Err is the reason why a side could not be measured. Once is the error of a measurement that succeeded when it
	// was repeated.
	Err, Once error

	looked int           // looks so far
	spent  time.Duration // in rounds
	loops  int           // of the next measurements
	orders [][sides]Side // of the next rounds
}

// Rounds returns the number of rounds of the cell.
func (r *Row) Rounds() int { return len(r.Values[New]) }

// Median returns the median of the values of a side, or NaN without values.
func (r *Row) Median(side Side) float64 { return median(r.Values[side]) }

// logs returns the logarithms of the change from Old to a side in each round.
func (r *Row) logs(side Side) []float64 {
	logs := make([]float64, len(r.Values[side]))
	for i, v := range r.Values[side] {
		logs[i] = r.cost(v) - r.cost(r.Values[Old][i])
	}
	return logs
}

// A run is the state of a gate.
type run struct {
	Plan
	level
	runner Runner
	show   func(string)
	random *rand.Rand
	now    func() time.Time
	end    time.Time
}

// late reports whether the time is used up.
func (g *run) late() bool { return !g.now().Before(g.end) }

// Run measures cells until each is decided, or the plan has no more rounds or time. It returns an error only if ctx
// ends. It reads the clock now before each round of a cell. If show is not nil, it is called with a line about each
// round.
func Run(ctx context.Context, p Plan, cells []Cell, runner Runner, now func() time.Time, show func(string)) ([]*Row, error) {
	if show == nil {
		show = func(string) {}
	}
	noisy := 0
	for _, c := range cells {
		if !c.Exact {
			noisy++
		}
	}
	alarm, miss := p.errorsAt(noisy)
	g := &run{p, level{p.Limit, alarm, miss}, runner, show, rand.New(rand.NewPCG(p.Seed, 0)), now, now().Add(p.Time)}
	rows := make([]*Row, len(cells))
	for i, c := range cells {
		rows[i] = &Row{Cell: c, loops: c.Loops}
	}
	if err := g.exact(ctx, rows); err != nil {
		return nil, err
	}
	if err := g.rounds(ctx, rows); err != nil {
		return nil, err
	}
	for _, r := range rows {
		if r.Judgement.Verdict == Undecided {
			r.Judgement = g.judge(r.logs(New), r.logs(Copy), true)
		}
	}
	return rows, nil
}

// exact decides on the cells without noise.
func (g *run) exact(ctx context.Context, rows []*Row) error {
	for _, r := range rows {
		if !r.Exact {
			continue
		}
		g.show(r.String())
		if err := g.measure(ctx, r, []Side{Old, New}); err != nil {
			return err
		}
		if r.Err == nil {
			r.Judgement = g.judgeExact(math.Exp(r.logs(New)[0]))
		}
	}
	return nil
}

// rounds measures undecided cells, each in its own round, until there is none or no time. The next cell is the one on
// which the least time was spent, so that slow cells do not keep the others from being decided.
func (g *run) rounds(ctx context.Context, rows []*Row) error {
	looks := g.looks()
	for !g.late() {
		open := slices.DeleteFunc(slices.Clone(rows), func(r *Row) bool { return r.Judgement.Verdict != Undecided || r.looked == len(looks) })
		if len(open) == 0 {
			return nil
		}
		r := slices.MinFunc(open, func(a, b *Row) int { return cmp.Compare(a.spent, b.spent) })
		g.show(fmt.Sprintf("%d of %d cells to decide: %v, round %d", len(open), len(rows), r, r.Rounds()+1))
		if len(r.orders) == 0 {
			r.orders = shuffled(g.random)
		}
		order := r.orders[0]
		r.orders = r.orders[1:]
		began := g.now()
		if err := g.measure(ctx, r, order[:]); err != nil {
			return err
		}
		took := g.now().Sub(began)
		r.spent += took
		r.loops = g.fit(r.loops, took/time.Duration(sides))
		if r.Err == nil && r.Rounds() == looks[r.looked] {
			r.looked++
			r.Judgement = g.judge(r.logs(New), r.logs(Copy), r.looked == len(looks))
		}
	}
	return nil
}

// mostLoops bounds the loops of a measurement, which may spend most of its time on starting ranks.
const mostLoops = 500

// fit returns the next number of loops, from the number and duration of the last measurement.
func (g *run) fit(loops int, took time.Duration) int {
	switch {
	case took > g.Slice*2:
		return max(loops/2, 1)
	case took < g.Slice/2:
		return min(loops*2, mostLoops)
	}
	return loops
}

// measure measures a cell on sides in their order. A side that fails twice decides on the cell. A failure of Old
// counts first: a cell that the earlier version cannot measure either is no failure of the later one.
func (g *run) measure(ctx context.Context, r *Row, order []Side) error {
	var values [sides]float64
	var failures [sides]error
	for _, side := range order {
		values[side], failures[side] = g.value(ctx, side, r)
		if first := failures[side]; first != nil && !errors.Is(first, ErrLacks) && ctx.Err() == nil {
			if values[side], failures[side] = g.value(ctx, side, r); failures[side] == nil {
				r.Once = fmt.Errorf("%v: %w", side, first)
			}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	for side, err := range failures {
		if err == nil {
			continue
		}
		r.Err = err
		switch {
		case Side(side) == New:
			r.Judgement.Verdict = NewFailed
		case errors.Is(err, ErrLacks):
			r.Judgement.Verdict = Missing
		default:
			r.Judgement.Verdict = OldFailed
		}
		return nil
	}
	for _, side := range order {
		r.Values[side] = append(r.Values[side], values[side])
	}
	return nil
}

// value measures a cell on a side once.
func (g *run) value(ctx context.Context, side Side, r *Row) (float64, error) {
	value, err := g.runner.Measure(ctx, side, r.Cell, r.loops)
	if err == nil && !(value > 0 && !math.IsInf(value, 1)) {
		err = fmt.Errorf("%v is no value", value)
	}
	return value, err
}

// Doubtful returns the rows that were measured and are neither OK nor Slower, and the number of measured rows.
func Doubtful(rows []*Row) (doubtful []*Row, measured int) {
	for _, r := range rows {
		switch r.Judgement.Verdict {
		case OK, Slower:
			measured++
		case Near, Noisy, Unsound:
			doubtful, measured = append(doubtful, r), measured+1
		}
	}
	return doubtful, measured
}

// Failed returns the rows that make the gate fail.
func Failed(rows []*Row) []*Row {
	return slices.DeleteFunc(slices.Clone(rows), func(r *Row) bool { return !r.Judgement.Verdict.fails() })
}

// median returns the median of values. For an even number it is the mean of the two in the middle. It is NaN without
// values.
func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}
