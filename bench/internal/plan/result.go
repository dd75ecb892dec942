package plan

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/onesided/rma/bench/internal/cases"
	"github.com/onesided/rma/bench/internal/stats"
	"github.com/onesided/rma/bench/internal/table"
)

// A Result is one cell as it was measured.
type Result struct {
	Case    string  `json:"case"`
	Size    int     `json:"size"`
	Value   float64 `json:"value"` // of the best loop
	Unit    string  `json:"unit"`
	Min     float64 `json:"min"` // over the loops
	Max     float64 `json:"max"`
	Repeat  int     `json:"repeat"` // loops
	Ranks   int     `json:"ranks"`
	Allocs  *uint64 `json:"allocs,omitempty"` // heap objects of rank 0's process in all timed loops
	Skipped string  `json:"skipped,omitempty"`
	// Percentiles are those of the iterations of a further loop.
	Percentiles *stats.Percentiles `json:"percentiles,omitempty"`

	// For a scheme Value, Min and Max are over the rounds. Ratio is the ratio of the time to that of the best fixed
	// scheme. Best marks that scheme.
	Scheme string        `json:"scheme,omitempty"`
	Ratio  *stats.Series `json:"ratio,omitempty"`
	Best   bool          `json:"best,omitempty"`
}

// NewResult returns the result of loops with these values.
func NewResult(one cases.Cell, ranks int, values []float64) Result {
	r := Result{Case: one.Case.Name, Size: one.Size, Unit: one.Case.Unit, Repeat: len(values), Ranks: ranks}
	r.Min, r.Max = slices.Min(values), slices.Max(values)
	r.Value = r.Min
	if one.Case.MoreIsBetter() {
		r.Value = r.Max
	}
	return r
}

// Skipped returns the result of a cell that is left out.
func Skipped(one cases.Cell, ranks int, why string) Result {
	return Result{Case: one.Case.Name, Size: one.Size, Unit: one.Case.Unit, Ranks: ranks, Skipped: why}
}

// line returns the result as the programs in peers print it.
func (r Result) line() string {
	if r.Skipped != "" {
		return fmt.Sprintf("%-21s %9d %14s %s", r.Case, r.Size, "-", r.Unit)
	}
	line := fmt.Sprintf("%-21s %9d %14.4f %s", r.Case, r.Size, r.Value, r.Unit)
	if r.Scheme != "" {
		line += fmt.Sprintf("\t%s\t%s", r.Scheme, table.Ratio(r.Ratio.Median))
	}
	return line
}

// Of reports whether the result is that of a cell.
func (r Result) Of(one cases.Cell) bool { return r.Case == one.Case.Name && r.Size == one.Size }

// Cell returns the cell as the command line names it.
func (r Result) Cell() string { return fmt.Sprintf("%s:%d", r.Case, r.Size) }

// Printer returns the function that writes results to w in format.
func Printer(format string, w io.Writer) func(Result) error {
	if format == "json" {
		encoder := json.NewEncoder(w)
		return func(r Result) error { return encoder.Encode(r) }
	}
	return func(r Result) error {
		_, err := fmt.Fprintln(w, strings.Join(append([]string{r.line()}, r.percentileLines()...), "\n"))
		return err
	}
}

// percentileLines returns the percentiles as they are printed below the result.
func (r Result) percentileLines() []string {
	if r.Percentiles == nil {
		return nil
	}
	var lines []string
	for _, p := range r.Percentiles.All() {
		lines = append(lines, fmt.Sprintf("%-21s %9d %14.4f %s", r.Case+":"+p.Name, r.Size, p.Value, r.Unit))
	}
	return lines
}
