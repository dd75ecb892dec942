package schemes

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/onesided/rma/bench/internal/plan"
	"github.com/onesided/rma/bench/internal/table"
)

// A Table is the table that schemes prints at the end.
type Table struct {
	Command string
	Machine fmt.Stringer
	Device  string
	Rounds  int

	// patterns have a result of each scheme. The last may be incomplete.
	patterns [][]plan.Result
}

// Add adds the next result. Results of a pattern are consecutive.
func (t *Table) Add(r plan.Result) {
	if r.Skipped != "" {
		return
	}
	last := len(t.patterns) - 1
	if last < 0 || t.patterns[last][0].Cell() != r.Cell() {
		t.patterns = append(t.patterns, nil)
		last++
	}
	t.patterns[last] = append(t.patterns[last], r)
}

// Complete returns the patterns without one that was cut off.
func (t *Table) Complete() [][]plan.Result {
	if last := len(t.patterns) - 1; last >= 0 && len(t.patterns[last]) < len(All()) {
		return t.patterns[:last]
	}
	return t.patterns
}

func (t *Table) write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s\n%s\n", t.Command, t.Machine)
	fmt.Fprintf(&b, "Device %s. Medians of %s, in each of which every scheme has a loop of about %v, or of %d epochs if they are long, in a window of its own.\n", t.Device, table.Plural(t.Rounds, "round"), usualDurations.visit, steadyIterations)
	b.WriteString("ratio: the time taken to that of the best fixed scheme within a round, of which the median counts: more is worse.\n")
	b.WriteString("adaptive is the default; all has every scheme and does not adapt; NAME=off is all but that scheme; at-once defers nothing.\n")
	for some := range slices.Chunk(t.Complete(), sideBySide) {
		b.WriteString("\n")
		t.writeBlock(&b, some)
	}
	b.WriteString("\n")
	if worst := t.worst(); worst != nil {
		fmt.Fprintf(&b, "adaptive takes at worst %s times as long as the best fixed scheme: in %s, where that is %s.\n", table.Ratio(worst[0].Ratio.Median), worst[0].Cell(), bestOf(worst))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeBlock writes patterns side by side, a scheme a line.
func (t *Table) writeBlock(b *strings.Builder, some [][]plan.Result) {
	names, units := []string{"scheme"}, []string{""}
	for _, p := range some {
		names, units = append(names, p[0].Cell(), ""), append(units, p[0].Unit, "ratio")
	}
	lines := [][]string{names, units}
	for i, first := range some[0] {
		line := []string{first.Scheme}
		for _, p := range some {
			text := table.Ratio(p[i].Ratio.Median)
			if p[i].Best {
				text = "best"
			}
			line = append(line, table.Value(&p[i].Value), text)
		}
		lines = append(lines, line)
	}
	table.Align(b, lines, func(i int) bool { return i > 0 })
}

// worst returns the pattern in which the adaptive scheme is worst in relation to the best fixed one, or nil if there
// is no ratio.
func (t *Table) worst() []plan.Result {
	var worst []plan.Result
	for _, p := range t.Complete() {
		if m := p[0].Ratio.Median; m != nil && (worst == nil || *m > *worst[0].Ratio.Median) {
			worst = p
		}
	}
	return worst
}

// sideBySide is the number of patterns in a line.
const sideBySide = 4

// bestOf returns the name of the best fixed scheme of a pattern.
func bestOf(pattern []plan.Result) string {
	return pattern[slices.IndexFunc(pattern, func(r plan.Result) bool { return r.Best })].Scheme
}
