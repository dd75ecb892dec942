package table

import (
	"fmt"
	"strings"

	"github.com/onesided/rma/bench/internal/stats"
)

// Value formats a number: with four decimals below 100, with one below 10000, and with none from there on. nil is "-".
func Value(v *float64) string {
	switch {
	case v == nil:
		return "-"
	case *v < 100:
		return fmt.Sprintf("%.4f", *v)
	case *v < 10000:
		return fmt.Sprintf("%.1f", *v)
	}
	return fmt.Sprintf("%.0f", *v)
}

// Ratio formats a ratio with two decimals. nil is "-".
func Ratio(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f", *v)
}

// Extremes formats the least and the greatest value of the rounds, if there are several.
func Extremes(s stats.Series) string {
	if len(s.Known()) < 2 {
		return ""
	}
	return fmt.Sprintf("%.2f-%.2f", *s.Min, *s.Max)
}

// GoalMark returns "met", "MISSED", or "" if met is nil.
func GoalMark(met *bool) string {
	switch {
	case met == nil:
		return ""
	case *met:
		return "met"
	}
	return "MISSED"
}

// Plural returns n and the noun, with an s unless n is 1.
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Align writes lines as columns. Columns for which number returns true are aligned to the right. There must be a line,
// and none may have more fields than the first; otherwise Align panics.
func Align(b *strings.Builder, lines [][]string, number func(column int) bool) {
	widths := make([]int, len(lines[0]))
	for _, line := range lines {
		for i, field := range line {
			widths[i] = max(widths[i], len(field))
		}
	}
	for _, line := range lines {
		var text strings.Builder
		for i, field := range line {
			if number(i) {
				fmt.Fprintf(&text, "%*s  ", widths[i], field)
			} else {
				fmt.Fprintf(&text, "%-*s  ", widths[i], field)
			}
		}
		b.WriteString(strings.TrimRight(text.String(), " "))
		b.WriteString("\n")
	}
}
