package compare

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/onesided/rma/bench/internal/machine"
	"github.com/onesided/rma/bench/internal/stats"
	"github.com/onesided/rma/bench/internal/table"
)

// A Table is the output of -peers.
type Table struct {
	Command string          `json:"command"`
	Machine machine.Machine `json:"machine"`
	Ours    string          `json:"ours"`
	Peers   []string        `json:"peers"` // with their versions
	Rounds  int             `json:"rounds"`
	Repeat  int             `json:"repeat"`
	Missing []string        `json:"missing,omitempty"` // peers, and where to get them
	// Ended is the reason why the run ended early, and Lacks lists the runs that are missing.
	Ended string   `json:"ended,omitempty"`
	Lacks []string `json:"lacks,omitempty"`

	Columns []string `json:"-"` // ours first
	Rows    []*Row   `json:"-"`
	// Spreads adds the lowest and the highest of the rounds to each median.
	Spreads bool `json:"-"`
}

// WriteJSON writes the circumstances and then the rows, one object a line.
func (c *Table) WriteJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(c); err != nil {
		return err
	}
	for _, r := range c.Rows {
		if err := encoder.Encode(r); err != nil {
			return err
		}
	}
	return nil
}

// WriteText writes the circumstances, the table and its notes.
func (c *Table) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\n", c.Command, c.Machine)
	fmt.Fprintf(&b, "ours: %s; %s\n", c.Ours, strings.Join(c.Peers, "; "))
	fmt.Fprintf(&b, "Medians of %s, each the best of %s. A round goes case by case: everyone measures one before the next.\n", table.Plural(c.Rounds, "round"), table.Plural(c.Repeat, "loop"))
	b.WriteString("ratio: ours to the better MPI within a round, of which the median counts; rounds: the lowest and the highest.\n")
	b.WriteString("For us and % less is better, for MB/s and Mop/s more is better.\n")
	if c.hasStandards() {
		b.WriteString("A goal \"of\" a case is of the ratio to that case at the same size, measured right beside it and shown below it.\n")
	}
	c.WriteEnded(&b)
	b.WriteString("\n")

	c.WriteTable(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

// End makes the comparison say that err ended it early, if it did.
func (c *Table) End(err error) {
	if ended := (*endedError)(nil); errors.As(err, &ended) {
		c.Ended, c.Lacks = ended.Error(), ended.lacks
	}
}

// WriteEnded writes what the table lacks, if the run ended early.
func (c *Table) WriteEnded(b *strings.Builder) {
	if c.Ended == "" {
		return
	}
	fmt.Fprintf(b, "Ended early: %s. These runs are missing:\n", c.Ended)
	for _, text := range c.Lacks {
		fmt.Fprintf(b, "  %s\n", text)
	}
}

// WriteTable writes the table and its notes.
func (c *Table) WriteTable(b *strings.Builder) {
	lines, notes, missed := c.Lines()
	table.Align(b, lines, func(i int) bool { return i == 1 || i >= 3 && i <= 3+len(c.Columns) })
	if missed > 0 {
		fmt.Fprintf(b, "\n%s missed.\n", table.Plural(missed, "goal"))
	}
	if len(notes) > 0 {
		b.WriteString("\n")
	}
	for _, note := range notes {
		fmt.Fprintf(b, "%s.\n", note)
	}
}

// Lines returns the lines of the table, with its head, the notes, and the number of missed goals.
func (c *Table) Lines() (lines [][]string, notes []string, missed int) {
	lines = [][]string{slices.Concat([]string{"case", "size", "unit"}, c.Columns, []string{"ratio", "rounds", "goal", ""})}
	for _, r := range c.Rows {
		line := []string{r.Case, fmt.Sprint(r.Size), r.Unit}
		for _, name := range c.Columns {
			line = append(line, c.value(r.Columns[name].Series))
			notes = AddNote(notes, fmt.Sprintf("%s %d, %s", r.Case, r.Size, name), r.Columns[name], c.Rounds)
		}
		line = append(line, table.Ratio(r.Ratio.Median), table.Extremes(r.Ratio), "", "")
		lines = append(lines, line)
		for i, v := range r.Goals {
			// Only a goal for the ratio to the peers, or for our value, shares a line with that ratio.
			if i > 0 || v.Of != nil {
				line = make([]string, len(line))
				if v.Of != nil {
					copy(line, []string{"  " + v.goal.of, fmt.Sprint(r.Size), r.Unit, table.Value(v.Of.Median)})
					line[len(line)-4], line[len(line)-3] = table.Ratio(v.Value.Median), table.Extremes(v.Value)
					notes = AddNote(notes, fmt.Sprintf("%s %d beside %s", v.goal.of, r.Size, r.Case), v.Of, c.Rounds)
				}
				lines = append(lines, line)
			}
			line[len(line)-2], line[len(line)-1] = v.Goal, table.GoalMark(v.Met)
			if v.Met != nil && !*v.Met {
				missed++
			}
		}
	}
	return lines, append(notes, c.Missing...), missed
}

// hasStandards reports whether a goal is a ratio to another case.
func (c *Table) hasStandards() bool {
	return slices.ContainsFunc(c.Rows, func(r *Row) bool {
		return slices.ContainsFunc(r.Goals, func(v *Verdict) bool { return v.Of != nil })
	})
}

// AddNote adds the reason why a column lacks values.
func AddNote(notes []string, of string, c *Column, rounds int) []string {
	if c.Reason == "" {
		return notes
	}
	note := of + ": " + c.Reason
	if known := len(c.Known()); known > 0 {
		note += fmt.Sprintf(" (in %d of %s)", rounds-known, table.Plural(rounds, "round"))
	}
	return append(notes, note)
}

// value formats what a library reached.
func (c *Table) value(s stats.Series) string {
	if !c.Spreads || len(s.Known()) < 2 {
		return table.Value(s.Median)
	}
	write := table.Value
	if *s.Max < 100 {
		write = table.Ratio
	}
	return fmt.Sprintf("%s (%s-%s)", write(s.Median), write(s.Min), write(s.Max))
}

// OurFailures returns an error if a cell of ours, or one measured beside it, lacks values for another reason than the
// switches.
func (c *Table) OurFailures() error {
	for _, r := range c.Rows {
		if column := r.Columns[Ours]; column.Failed {
			return fmt.Errorf("bench: %s %d failed here: %s", r.Case, r.Size, column.Reason)
		}
		for _, v := range r.Goals {
			if v.Of != nil && v.Of.Failed {
				return fmt.Errorf("bench: %s %d, measured for %s, failed here: %s", v.goal.of, r.Size, r.Case, v.Of.Reason)
			}
		}
	}
	return nil
}
