package compare

import (
	"fmt"
	"slices"

	"github.com/onesided/rma/bench/internal/cases"
	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/bench/internal/plan"
)

// A goal is what a cell must reach.
type goal struct {
	// of says what limit is: a ratio to the better MPI (thePeers), a value in the cell's unit (itself), or a ratio
	// to the case of this name at the same size, measured beside it.
	of      string
	limit   float64
	atLeast bool // more is better
}

const (
	thePeers = ""
	itself   = "ours"
)

// bounds are the limits of goals of one kind, by case and size.
type bounds struct {
	of     string
	limits map[string]map[int]float64
}

var (
	sharedGoals = []bounds{
		{thePeers, map[string]map[int]float64{
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

			"msg_lat":         {8: 0.7},
			"barrier_lat":     {2: 1, 4: 1, 16: 1, 64: 1},
			"allreduce_lat":   {8: 1},
			"allreduce_scale": {4: 1, 16: 1, 64: 1},

			"gups":          {22: 2},
			"stencil_pscw":  {1000: 1},
			"stencil_fence": {1000: 1},
			"transpose":     {1000: 1},
		}},
		{itself, map[string]map[int]float64{
			"create_time": {64: 1e6},
			"idle_cpu":    {2: 2},
		}},
	}
	tcpGoals = []bounds{
		{thePeers, map[string]map[int]float64{
			"put_flush_lat":   {8: 0.95},
			"get_flush_lat":   {8: 0.7, 1024: 0.7},
			"acc_flush_lat":   {8: 0.95},
			"fop_lat":         {8: 0.95},
			"cas_lat":         {8: 0.95},
			"msg_lat":         {8: 1},
			"barrier_lat":     {2: 1, 4: 1, 16: 1, 64: 1},
			"allreduce_lat":   {8: 1},
			"allreduce_scale": {4: 1, 16: 1, 64: 1},
			"put_bw":          {65536: 1, 1048576: 1},
			"get_bw":          {65536: 1, 1048576: 1},

			"gups":          {20: 2},
			"stencil_pscw":  {1000: 1},
			"stencil_fence": {1000: 1},
			"transpose":     {1000: 1},
		}},
		{"socket_lat", map[string]map[int]float64{
			"put_flush_lat": {8: 1.2},
			"acc_flush_lat": {8: 1.2},
			"fop_lat":       {8: 1.2},
			"cas_lat":       {8: 1.2},
		}},
		{"socket_bw", map[string]map[int]float64{
			"put_bw": {65536: 0.9, 1048576: 0.9},
			"get_bw": {65536: 0.9, 1048576: 0.9},
		}},
		{itself, map[string]map[int]float64{
			"passive_put_lat": {8: 200},
			"idle_cpu":        {2: 2},
		}},
	}
	// goals are the goals by device. Goroutines share memory as processes of one machine do.
	goals = map[string][]bounds{device.Local: sharedGoals, device.Shm: sharedGoals, device.TCP: tcpGoals}
)

// goalsOf returns the goals of a cell on a device.
func goalsOf(device string, one cases.Cell) []goal {
	var found []goal
	for _, b := range goals[device] {
		if limit, ok := b.limits[one.Case.Name][one.Size]; ok {
			found = append(found, goal{of: b.of, limit: limit, atLeast: one.Case.MoreIsBetter()})
		}
	}
	return found
}

// standardsOf returns the job of the cells to which goals of j's cells are ratios.
func standardsOf(device string, j plan.Job) plan.Job {
	standards := plan.Job{Ranks: 2}
	for _, one := range j.Cells {
		for _, g := range goalsOf(device, one) {
			if !g.ofCase() {
				continue
			}
			standard := g.standard(one)
			if !slices.ContainsFunc(standards.Cells, func(other cases.Cell) bool { return other.String() == standard.String() }) {
				standards.Cells = append(standards.Cells, standard)
			}
		}
	}
	return standards
}

// ofCase reports whether the goal is a ratio to another case.
func (g goal) ofCase() bool { return g.of != thePeers && g.of != itself }

// standard returns the cell to which a goal is a ratio.
func (g goal) standard(one cases.Cell) cases.Cell {
	return cases.Cell{Case: cases.ByName(g.of), Size: one.Size}
}

func (g goal) met(value float64) bool {
	if g.atLeast {
		return value >= g.limit
	}
	return value <= g.limit
}

func (g goal) String() string {
	sign := "<="
	if g.atLeast {
		sign = ">="
	}
	switch g.of {
	case thePeers:
		return fmt.Sprintf("%s %.2f", sign, g.limit)
	case itself:
		return fmt.Sprintf("ours %s %.0f", sign, g.limit)
	}
	return fmt.Sprintf("%s %.2f of %s", sign, g.limit, g.of)
}
