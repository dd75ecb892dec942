package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/onesided/rma/bench/internal/chart"
	"github.com/onesided/rma/bench/internal/compare"
	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/bench/internal/experiments/schemes"
	"github.com/onesided/rma/bench/internal/plan"
	"github.com/onesided/rma/bench/internal/table"
)

// html returns the report as a page that needs no other file.
func (r *report) html(plots []file) string {
	head, p := new(page), new(page)
	head.WriteString("<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n<meta charset=\"utf-8\"/>\n")
	head.element("title", "Benchmark of "+r.Machine.CPU)
	fmt.Fprintf(head, "<style>%s</style>\n</head>\n<body>\n", reportStyle)
	head.element("h1", "One-sided operations, measured")
	if r.Ended != "" {
		fmt.Fprintf(head, "<p class=\"ended\">This run ended early, and has only what came before: %s</p>\n", chart.XMLText(r.Ended))
	}
	r.writeSummary(head)
	r.writeFailures(p)
	p.heading("Machine and command")
	r.writeCircumstances(p)
	for _, lines := range r.caseLines() {
		c := lines[0].benchCase()
		p.heading(c.Name + ": " + c.About)
		for _, f := range plots {
			if f.of == c.Name {
				p.figure(f)
			}
		}
		p.table(caseTable(lines))
		for _, note := range leftOut(lines) {
			p.element("p", note)
		}
	}
	r.writeKernels(p)
	headed := false
	for _, f := range plots {
		if f.of != "" {
			continue
		}
		if !headed || !strings.HasPrefix(f.name, "paper-") {
			headed = strings.HasPrefix(f.name, "paper-")
			title := f.title
			if headed {
				title = "Papers' figures"
			}
			p.heading(title)
		}
		p.figure(f)
		if f.name == "schemes.svg" {
			p.table(schemesTable(r.schemes.Complete()))
		}
	}
	return head.String() + p.contents() + p.String() + "</body>\n</html>\n"
}

// writeSummary writes what the page has, and the medians of each case at its first and last size.
func (r *report) writeSummary(p *page) {
	all, measured := 0, 0
	for _, l := range r.lines {
		for _, c := range l.cells {
			all++
			if len(c.Known()) == r.o.rounds {
				measured++
			}
		}
	}
	text := fmt.Sprintf("%d of %s of cases have a value of each of %s", measured, table.Plural(all, "cell"), table.Plural(r.o.rounds, "round"))
	if r.took > 0 {
		text += fmt.Sprintf("; the run took %v", r.took.Round(time.Second))
	}
	p.element("p", text+".")
	load, busy := r.load.Describe(r.Machine.Cores)
	if busy {
		fmt.Fprintf(p, "<p class=\"ended\">%s</p>\n", chart.XMLText(load))
	} else {
		p.element("p", load)
	}
	p.table(r.summary())
}

// summary returns the medians of each case at its first and its last size, a column for each line of the plots.
func (r *report) summary() [][]string {
	head := []string{"case", "size", "unit"}
	for _, l := range r.lines {
		if !slices.Contains(head[3:], l.name()) {
			head = append(head, l.name())
		}
	}
	rows := [][]string{head}
	for _, lines := range r.caseLines() {
		cells := lines[0].cells
		for _, i := range slices.Compact([]int{0, len(cells) - 1}) {
			row := []string{cells[i].Case.Name, fmt.Sprint(cells[i].Size), cells[i].Case.Unit}
			for _, name := range head[3:] {
				k := slices.IndexFunc(lines, func(l *line) bool { return l.name() == name })
				if k < 0 {
					row = append(row, "-")
				} else {
					row = append(row, table.Value(lines[k].cells[i].Median))
				}
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// failures returns the cells and the steps that failed, each with its reason.
func (r *report) failures() []string {
	var notes []string
	for _, l := range r.lines {
		for _, c := range l.cells {
			if c.Failed {
				notes = compare.AddNote(notes, fmt.Sprintf("%s, %s", c.Cell.String(), l.name()), &c.Column, len(c.Values))
			}
		}
	}
	for _, k := range r.kernels {
		for _, b := range k.comparisons {
			for _, row := range b.Rows {
				for _, by := range k.Columns {
					if c := row.Columns[by]; c.Failed {
						notes = compare.AddNote(notes, fmt.Sprintf("%s, %s, %s", row.Case, k.o.Device, by), c, k.o.Rounds)
					}
				}
			}
		}
	}
	return append(notes, r.failed...)
}

func (r *report) writeFailures(p *page) {
	failures := r.failures()
	p.heading(fmt.Sprintf("Failures: %d", len(failures)))
	if len(failures) == 0 {
		return
	}
	p.WriteString("<ul>\n")
	for _, text := range failures {
		p.element("li", text)
	}
	p.WriteString("</ul>\n")
}

func (r *report) writeCircumstances(p *page) {
	rows := [][]string{
		{"of", "what"},
		{"processor", r.Machine.CPU}, {"cores", fmt.Sprint(r.Machine.Cores)}, {"system", r.Machine.System}, {"Go", r.Machine.Go},
		{"date", r.Date.Format(time.RFC1123Z)},
	}
	for _, o := range r.o.devices {
		if o.Card == nil {
			rows = append(rows, []string{"ours", device.Describe(o.Device, 2)})
		}
	}
	for _, peer := range append(r.Peers, r.Missing...) {
		rows = append(rows, []string{"peer", peer})
	}
	p.table(rows)
	fmt.Fprintf(p, "<p><code>%s</code></p>\n", chart.XMLText(r.Command))
	p.element("p", fmt.Sprintf("Each value is the median of its rounds, %d if none failed, each the best of %s. Percentiles are of the iterations of a loop of its own, timed one by one or, if they are short, in batches, of which the means count; "+
		"they are at most 6 %% too long. results.txt has all rounds, for benchstat.", r.o.rounds, table.Plural(loops, "loop")))
}

// caseTable returns a row for each size of each line.
func caseTable(lines []*line) [][]string {
	unit := lines[0].benchCase().Unit
	head := []string{"", "size", unit, "lowest", "highest", "rounds"}
	percentiles := false
	for _, l := range lines {
		for _, c := range l.cells {
			percentiles = percentiles || c.percentiles() != nil
		}
	}
	if percentiles {
		head = append(head, "p50", "p90", "p99", "p99.9", "max")
	}
	rows := [][]string{head}
	for _, l := range lines {
		for _, c := range l.cells {
			row := []string{l.name(), fmt.Sprint(c.Size), table.Value(c.Median), table.Value(c.Min), table.Value(c.Max), fmt.Sprint(len(c.Known()))}
			if t := c.percentiles(); t != nil {
				for _, one := range t.All() {
					row = append(row, table.Value(&one.Value))
				}
			}
			for len(row) < len(head) {
				row = append(row, "")
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// leftOut lists the cells that lack values, with the reasons.
func leftOut(lines []*line) []string {
	var notes []string
	for _, l := range lines {
		for _, c := range l.cells {
			notes = compare.AddNote(notes, fmt.Sprintf("%s, %s", c.Cell.String(), l.name()), &c.Column, len(c.Values))
		}
	}
	return notes
}

// schemesTable returns a row for each scheme, with the value and the ratio of each pattern.
func schemesTable(patterns [][]plan.Result) [][]string {
	head := []string{"scheme"}
	for _, p := range patterns {
		head = append(head, p[0].Cell()+", "+p[0].Unit, "ratio")
	}
	rows := [][]string{head}
	for i, s := range schemes.All() {
		row := []string{s.Name}
		for _, p := range patterns {
			row = append(row, table.Value(&p[i].Value), table.Ratio(p[i].Ratio.Median))
		}
		rows = append(rows, row)
	}
	return rows
}
