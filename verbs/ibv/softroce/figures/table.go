package main

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
)

// A row is the results of all rounds for a figure.
type row struct {
	figure             *figure
	ours, bare, theirs []float64
}

func (r *row) add(ours, bare, theirs float64) {
	r.ours, r.bare, r.theirs = append(r.ours, ours), append(r.bare, bare), append(r.theirs, theirs)
}

// ratios returns the ratios of the rounds, in order.
func ratios(of, to []float64) []float64 {
	var all []float64
	for i := range of {
		all = append(all, of[i]/to[i])
	}
	slices.Sort(all)
	return all
}

func median(values []float64) float64 {
	values = slices.Sorted(slices.Values(values))
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// table returns the medians of the rounds, and whether goals are reached.
func table(rows []*row) string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "case\tours\tbare card\tperftest\tunit\tratio\trounds\tbare\tgoal\t")
	for _, r := range rows {
		f := r.figure
		whole, card := ratios(r.ours, r.theirs), ratios(r.bare, r.theirs)
		goal, missed := "", ""
		if f.goal != 0 {
			sign := ">="
			if f.kind.lessIsBetter() {
				sign = "<="
			}
			goal = fmt.Sprintf("%s %.2f", sign, f.goal)
			if !f.kind.reached(median(whole), f.goal) {
				missed = "missed"
			}
		}
		fmt.Fprintf(w, "%v\t%.4g\t%.4g\t%.4g\t%s\t%.2f\t%.2f..%.2f\t%.2f\t%s\t%s\n", f, median(r.ours), median(r.bare), median(r.theirs), units[f.kind],
			median(whole), whole[0], whole[len(whole)-1], median(card), goal, missed)
	}
	_ = w.Flush()
	return text.String()
}
