package main

import "fmt"

// A goal is what a cell must reach: a ratio to the better peer, or a value.
type goal struct {
	limit    float64
	absolute bool // in the cell's unit, whatever the peers do
	atLeast  bool // more is better
}

// goals by case and size.
var goals = map[string]map[int]float64{
	"put_flush_lat": {8: 0.6, 1024: 0.8, 65536: 1, 1048576: 1},
	"get_flush_lat": {8: 0.6, 1024: 0.8, 65536: 1, 1048576: 1},
	"acc_flush_lat": {8: 0.5, 65536: 1},
	"fop_lat":       {8: 0.5},
	"cas_lat":       {8: 0.5},
	"fence_put_lat": {8: 0.5},
	"pscw_put_lat":  {8: 0.6},
	"pscw_get_lat":  {8: 0.6},
	"pscw_both_lat": {8: 0.8},
	"put_bw":        {65536: 1, 1048576: 1},
	"get_bw":        {65536: 1, 1048576: 1},
	"pattern16_bw":  {65536: 1, 1048576: 1},
	"scatter_rate":  {1000: 3},
	"update_rate":   {1000: 3},
	"fence_rate":    {1000: 3},
}

// absoluteGoals by case and size, in the case's unit.
var absoluteGoals = map[string]map[int]float64{
	"create_time": {64: 1e6},
	"idle_cpu":    {2: 2},
}

// goalOf is the goal of a cell, nil if it has none.
func goalOf(one cell) *goal {
	if limit, ok := goals[one.c.name][one.size]; ok {
		return &goal{limit: limit, atLeast: one.c.moreIsBetter()}
	}
	if limit, ok := absoluteGoals[one.c.name][one.size]; ok {
		return &goal{limit: limit, absolute: true, atLeast: one.c.moreIsBetter()}
	}
	return nil
}

func (g *goal) met(value float64) bool {
	if g.atLeast {
		return value >= g.limit
	}
	return value <= g.limit
}

func (g *goal) String() string {
	sign := "<="
	if g.atLeast {
		sign = ">="
	}
	if g.absolute {
		return fmt.Sprintf("ours %s %.0f", sign, g.limit)
	}
	return fmt.Sprintf("%s %.2f", sign, g.limit)
}
