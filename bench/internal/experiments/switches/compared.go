package switches

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/onesided/rma/bench/internal/cases"
	"github.com/onesided/rma/bench/internal/cli"
	"github.com/onesided/rma/bench/internal/compare"
	"github.com/onesided/rma/bench/internal/plan"
	"github.com/onesided/rma/bench/internal/runner"
	"github.com/onesided/rma/bench/internal/stats"
	"github.com/onesided/rma/bench/internal/toggles"
)

// A comparison is a switchCase as it is measured: with the switch at its default and at the setting.
type comparison struct {
	switchCase
	name   string
	values [2]string
	sides  [2]*runner.Options
	jobs   []plan.Job
	rows   []*row
}

// A row is a cell of a comparison.
type row struct {
	Switch string `json:"switch"`
	Device string `json:"device"`
	Case   string `json:"case"`
	Size   int    `json:"size"`
	Unit   string `json:"unit"`
	// Default and Setting are the values of the switch that are compared. WithDefault and WithSetting are what was
	// measured with them.
	Default     string          `json:"default"`
	Setting     string          `json:"setting"`
	WithDefault *compare.Column `json:"with_default"`
	WithSetting *compare.Column `json:"with_setting"`
	// Ratio is the time with the value Setting to that with Default, within each round.
	Ratio stats.Series `json:"ratio"`

	cell cases.Cell
}

// newComparison returns the comparison of a switch's case.
func newComparison(e switchCase, t toggles.Toggle, o *options) (*comparison, error) {
	_, setting, _ := strings.Cut(e.set, "=")
	if allowed := t.Values[1:]; !slices.Contains(allowed, setting) {
		return nil, cli.Usagef("%s: %s is the default; allowed are %s=%s", e.set, t.Values[0], t.Name, strings.Join(allowed, ", "+t.Name+"="))
	}
	s := &comparison{switchCase: e, name: t.Name, values: [2]string{t.Values[0], setting}}
	var cells *plan.Selection
	for side, value := range s.values {
		set, requested, err := e.options(t.Name+"="+value, fmt.Sprint(o.repeat))
		if err != nil {
			return nil, err
		}
		set.Timeout = o.timeout
		s.sides[side], cells = set, requested
	}
	jobs, err := cells.Jobs(0)
	if err != nil {
		return nil, err
	}
	s.jobs = plan.ByCase(jobs)
	for _, j := range s.jobs {
		for _, one := range j.Cells {
			s.rows = append(s.rows, &row{
				Switch: s.name, Device: e.device, Case: one.Case.Name, Size: one.Size, Unit: one.Case.Unit,
				Default: s.values[0], Setting: setting, cell: one,
				WithDefault: &compare.Column{Series: stats.NewSeries(o.rounds)}, WithSetting: &compare.Column{Series: stats.NewSeries(o.rounds)},
			})
		}
	}
	return s, nil
}

// take measures both sides of the comparison in a round.
func (s *comparison) take(ctx context.Context, round int, stderr io.Writer) error {
	for _, j := range s.jobs {
		for _, side := range stats.InRound(round, []int{0, 1}) {
			results, err := s.sides[side].Collect(ctx, j, stderr)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			for _, r := range s.rows {
				if slices.Contains(j.Cells, r.cell) {
					[]*compare.Column{r.WithDefault, r.WithSetting}[side].Enter(round, j, r.cell, results, err)
				}
			}
		}
	}
	return nil
}

// judge compares what was measured within each round.
func (s *comparison) judge() {
	for _, r := range s.rows {
		c := r.cell.Case
		r.Ratio = stats.Ratios(stats.Cost(c.Unit, r.WithSetting.Series), stats.Cost(c.Unit, r.WithDefault.Series))
	}
}
