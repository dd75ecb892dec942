package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/onesided/rma/scheduler"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// A scheme is a row of schemes: the ways that its windows do without.
type scheme struct {
	name    string
	without scheduler.Scheme
}

// schemes are compared with each other. The first is the adaptive one, which windows
// follow by default; the others are fixed.
func schemes() []scheme {
	const fixed = scheduler.Adapt
	return []scheme{
		{"adaptive", 0},
		{"all", fixed},
		{"early=off", fixed | scheduler.Early},
		{"merge=off", fixed | scheduler.Merge},
		{"pack=off", fixed | scheduler.Pack},
		{"interleave=off", fixed | scheduler.Interleave},
		{"getsfirst=off", fixed | scheduler.GetsFirst},
		{"at-once", fixed | scheduler.Defer},
	}
}

// patterns are the epochs that the schemes are compared by if no cases are named.
func patterns() []string {
	return []string{
		"put_flush_lat:8", "get_bw:8", "scatter_rate", "row_rate", "mixed_rate", "overlap_put_lat:1048576",
		"pscw_put_lat:8", "pattern16_bw:1024,8192,65536,1048576", "fence_put_lat:8", "fence_rate",
		"hashtable_insert_rate", "hashtable_lookup_rate", "put_target_cpu", "acc_target_cpu",
	}
}

const (
	// visit is about how long a scheme has its turn. Within a round the turns of all
	// follow each other in less time than a machine keeps its speed.
	visit = 20 * time.Millisecond
	// learning is how long a scheme runs before the first round.
	learning = 200 * time.Millisecond
	// fewestTurns are those of a loop, however long they take.
	fewestTurns = 3
)

// compareSchemes measures cells, which every rank does together, each with all schemes.
func (s *stage) compareSchemes(ctx context.Context, cells []cell, rounds int) error {
	for _, one := range cells {
		if why := s.settings.forbids(one); why != "" {
			if err := s.publish(result{Case: one.c.name, Size: one.size, Unit: one.c.unit, Ranks: s.w.Size(), Skipped: why}); err != nil {
				return err
			}
			continue
		}
		results, err := s.compareAt(ctx, one, rounds)
		if err != nil {
			return fmt.Errorf("bench: schemes of %s: %w", spell(one), err)
		}
		for _, r := range results {
			if err := s.publish(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// compareAt measures one cell. Each scheme has a board of its own, that is there from
// before the first round to the end, so that what it has learnt stays.
func (s *stage) compareAt(ctx context.Context, one cell, rounds int) ([]result, error) {
	all := schemes()
	boards, err := s.boards(ctx, one, all)
	if err != nil {
		return nil, err
	}
	turns, values := make([]int, len(all)), make([]series, len(all))
	for i, b := range boards {
		if turns[i], err = s.learn(ctx, b, one); err != nil {
			return nil, fmt.Errorf("%s: %w", all[i].name, err)
		}
		values[i] = newSeries(rounds)
	}
	for round := range rounds {
		for _, i := range inRound(round, len(all)) {
			took, _, err := s.timed(ctx, boards[i], one, turns[i])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", all[i].name, err)
			}
			values[i].set(round, one.c.value(took.Seconds()/float64(turns[i]), one.size))
		}
	}
	for _, b := range boards {
		if err := b.leave(ctx, one.c.scene); err != nil {
			return nil, err
		}
		if err := b.close(); err != nil {
			return nil, err
		}
	}
	return schemeResults(one, s.w.Size(), all, values), nil
}

// boards are one for each scheme, on the scene of the cell.
func (s *stage) boards(ctx context.Context, one cell, all []scheme) ([]*board, error) {
	var boards []*board
	for i, each := range all {
		options := append(slices.Clone(s.settings.options), window.Without(each.without))
		var b *board
		var err error
		if i == 0 {
			b, err = newBoard(ctx, s.w, []cell{one}, options)
		} else {
			b, err = boards[0].beside(ctx, s.w, options)
		}
		if err != nil {
			return nil, err
		}
		if err := b.enter(ctx, one.c.scene); err != nil {
			return nil, err
		}
		boards = append(boards, b)
	}
	return boards, nil
}

// learn runs a cell's loop on a board, for everything to be as it will be later, and
// gives the number of turns of a visit.
func (s *stage) learn(ctx context.Context, b *board, one cell) (int, error) {
	turns, began := fewestTurns, time.Now()
	for {
		start := time.Now()
		if _, _, err := s.timed(ctx, b, one, turns); err != nil {
			return 0, err
		}
		next, done := afterLoop(turns, time.Since(start), time.Since(began))
		// Rank 0's clock counts.
		decision := []int{next, 0}
		if done {
			decision[1] = 1
		}
		if err := world.Broadcast(ctx, s.w, 0, decision); err != nil {
			return 0, err
		}
		if turns = decision[0]; decision[1] == 1 {
			return turns, nil
		}
	}
}

// afterLoop is how many turns the next loop has when one of some turns took that long,
// and whether enough has been learnt.
func afterLoop(turns int, took, since time.Duration) (next int, done bool) {
	if took < visit {
		return 2 * turns, false
	}
	if since < learning {
		return turns, false
	}
	return max(fewestTurns, int(float64(turns)*visit.Seconds()/took.Seconds())), true
}

// inRound is the order of n in a round: every other one goes backwards, so that a drift
// of the machine is not always to the same side's advantage.
func inRound(round, n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	if round%2 == 1 {
		slices.Reverse(order)
	}
	return order
}

// schemeResults are the medians of what each scheme gave in each round, and their times
// in relation to the best fixed scheme's.
func schemeResults(one cell, ranks int, all []scheme, values []series) []result {
	costs := make([]series, len(values))
	for i, v := range values {
		costs[i] = one.c.cost(v)
	}
	best := bestFixed(costs)
	var results []result
	for i, v := range values {
		ratio := perRound(costs[i], costs[best])
		results = append(results, result{
			Case: one.c.name, Size: one.size, Unit: one.c.unit, Ranks: ranks, Repeat: len(v.Values),
			Value: *v.Median, Min: *v.Min, Max: *v.Max,
			Scheme: all[i].name, Ratio: &ratio, Best: i == best,
		})
	}
	return results
}

// cost is proportional to time, whatever the unit of values.
func (c *benchCase) cost(values series) series {
	if !c.moreIsBetter() {
		return values
	}
	ones := newSeries(len(values.Values))
	for round := range ones.Values {
		ones.set(round, 1)
	}
	return perRound(ones, values)
}

// bestFixed is the scheme but the first that takes the least time in relation to the
// second within a round, by the median of the rounds. The best of each round would be
// another every time, and better by luck than any scheme is.
func bestFixed(costs []series) int {
	best, least := 1, 1.0
	for i := 2; i < len(costs); i++ {
		if ratio := perRound(costs[i], costs[1]); ratio.Median != nil && *ratio.Median < least {
			best, least = i, *ratio.Median
		}
	}
	return best
}
