package gate

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// A Plan says how long a gate measures and which change counts as slower.
type Plan struct {
	// Limit is the greatest change that is allowed, as a fraction: 0.05 for 5 %.
	Limit float64
	// Rounds bounds the rounds of a cell, and Time the time of all measurements.
	Rounds int
	Time   time.Duration
	// Slice is the intended time of a measurement. All sides of a round have the same number of loops.
	Slice time.Duration
	// Alarm is the probability that a gate without a slower cell fails. Miss is the probability that a slower cell is
	// OK.
	Alarm, Miss float64
	// Seed determines the orders.
	Seed uint64
}

// A Side is one of the programs that are measured.
type Side int

const (
	Old  Side = iota // the earlier version
	Copy             // the earlier version again, for the noise
	New
	sides
)

func (s Side) String() string { return [...]string{"old", "copy", "new"}[s] }

// firstLook is the number of rounds after which cells are judged for the first time.
const firstLook = 8

// looks returns the numbers of rounds after which cells are judged.
func (p Plan) looks() []int {
	var looks []int
	for n := firstLook; n < p.Rounds; n += n / 2 {
		looks = append(looks, n)
	}
	return append(looks, p.Rounds)
}

// errorsAt returns the error rates of a bound at one look, for the number of cells in the gate.
func (p Plan) errorsAt(cells int) (alarm, miss float64) {
	looks := float64(len(p.looks()))
	return p.Alarm / looks / float64(max(cells, 1)), p.Miss / looks
}

// Fewest returns the least number of rounds after which one of cells cells can be slower.
func (p Plan) Fewest(cells int) int {
	alarm, _ := p.errorsAt(cells)
	return enough(alarm)
}

// Check returns an error if the plan cannot decide on the given number of noisy cells.
func (p Plan) Check(cells int) error {
	switch {
	case !(p.Limit > 0) || math.IsInf(p.Limit, 1):
		return errors.New("the limit must be above 0 %")
	case p.Time <= 0:
		return errors.New("the time must be above 0")
	case cells > 0 && p.Rounds < p.Fewest(cells):
		return fmt.Errorf("%d rounds are too few: %d cells need %d before one can be told to be slower", p.Rounds, cells, p.Fewest(cells))
	}
	return nil
}

// orders are the orders in which the sides of a cell can be measured.
var orders = [...][sides]Side{
	{Old, Copy, New}, {New, Copy, Old}, {Copy, New, Old}, {Old, New, Copy}, {New, Old, Copy}, {Copy, Old, New},
}

// shuffled returns the orders for the next rounds of a cell, each once.
func shuffled(random *rand.Rand) [][sides]Side {
	drawn := slices.Clone(orders[:])
	random.Shuffle(len(drawn), func(i, j int) { drawn[i], drawn[j] = drawn[j], drawn[i] })
	return drawn
}
