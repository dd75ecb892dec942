package paper

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/onesided/rma/bench/internal/stats"
	"github.com/onesided/rma/bench/internal/table"
)

// Figures returns the figures of all papers, in their order.
func Figures() []*Figure {
	return slices.Concat(schedulingFigures(), frequentFigures(), superpipelineFigures(), channelFigures(), collectiveFigures(), pipelineFigures(), traceFigures())
}

// parts returns the letters of the papers.
func parts() []string {
	var letters []string
	for _, f := range Figures() {
		if !slices.Contains(letters, f.part) {
			letters = append(letters, f.part)
		}
	}
	return letters
}

// writeJSON writes the figures, one object a line.
func writeJSON(w io.Writer, plots []*Plot, _ bool) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	for _, p := range plots {
		if err := encoder.Encode(p); err != nil {
			return err
		}
	}
	return nil
}

// writeText writes a line for each case, then the reasons, and the curves if requested.
func writeText(w io.Writer, plots []*Plot, curves bool) error {
	var b strings.Builder
	lines := [][]string{{"part", "figure", "case", "theirs", "ours", "unit", "", ""}}
	var reasons []string
	for _, p := range plots {
		for _, v := range p.Verdicts {
			lines = append(lines, []string{p.Part, p.Figure, v.Case, v.Theirs, rounded(v.Ours), v.Unit, v.word(), note(v.Reason, &reasons)})
		}
	}
	table.Align(&b, lines, func(i int) bool { return i == 3 || i == 4 })
	for i, reason := range reasons {
		if i == 0 {
			b.WriteString("\nBeyond the paper's:\n")
		}
		fmt.Fprintf(&b, "[%d] %s.\n", i+1, reason)
	}
	for _, p := range plots {
		if curves {
			p.writeCurves(&b)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// note adds a reason to reasons, unless it is there, and returns its number.
func note(reason string, reasons *[]string) string {
	if reason == "" {
		return ""
	}
	i := slices.Index(*reasons, reason)
	if i < 0 {
		i = len(*reasons)
		*reasons = append(*reasons, reason)
	}
	return fmt.Sprintf("[%d]", i+1)
}

// writeCurves writes the values at each x.
func (p *Plot) writeCurves(b *strings.Builder) {
	fmt.Fprintf(b, "\n%s%s: %s; %s, %s\n", p.Part, p.Figure, p.Title, p.Profile, p.figure.yLabel)
	improvement := "saved %"
	if stats.MoreIsBetter(p.Unit) {
		improvement = "gain %"
	}
	for _, c := range p.Curves {
		fmt.Fprintf(b, "  %s: %s\n", c.Short, c.Name)
	}
	lines := [][]string{{"  " + p.figure.xLabel}}
	for _, c := range p.Curves {
		lines[0] = append(lines[0], c.Short)
	}
	lines[0] = append(lines[0], improvement)
	for i, x := range p.X {
		line := []string{fmt.Sprint(x)}
		for _, c := range p.Curves {
			line = append(line, table.Value(&c.Values[i]))
		}
		lines = append(lines, append(line, rounded(p.improvements()[i])))
	}
	table.Align(b, lines, func(int) bool { return true })
}

// rounded formats a number with the digits that a paper prints.
func rounded(v float64) string {
	// A zero has no sign, also after rounding.
	if v > -unprinted && v < unprinted {
		return "0"
	}
	if v == float64(int64(v)) || v >= 1000 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.1f", v)
}
