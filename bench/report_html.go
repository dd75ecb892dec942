package main

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// reportStyle is light, and prints.
const reportStyle = `body{font:15px/1.45 sans-serif;color:#222;background:#fff;max-width:60em;margin:2em auto;padding:0 1em}
h1{font-size:1.6em}h2{font-size:1.25em;margin-top:2em;border-bottom:1px solid #ccc}
table{border-collapse:collapse;font-size:13px;margin:1em 0}th,td{padding:2px 9px;border-bottom:1px solid #ddd;text-align:right;white-space:nowrap}
th{background:#f4f4f4}th:first-child,td:first-child{text-align:left}
code{font-size:12px;background:#f4f4f4;padding:1px 3px;overflow-wrap:anywhere}svg{max-width:100%;height:auto}
.ended{border:2px solid #b5541c;padding:.5em 1em}
@media print{body{margin:0;max-width:none}figure,svg,tr{break-inside:avoid}}figure{margin:1em 0}`

// A page is the HTML of a report as it grows.
type page struct{ strings.Builder }

// element writes an element that has text only.
func (p *page) element(name, text string) {
	fmt.Fprintf(p, "<%s>%s</%s>\n", name, xmlText(text), name)
}

// table writes rows, of which the first are the heads.
func (p *page) table(rows [][]string) {
	p.WriteString("<table>\n")
	for i, row := range rows {
		name := "td"
		if i == 0 {
			name = "th"
		}
		p.WriteString("<tr>")
		for _, text := range row {
			fmt.Fprintf(p, "<%s>%s</%s>", name, xmlText(text), name)
		}
		p.WriteString("</tr>\n")
	}
	p.WriteString("</table>\n")
}

// figure writes a plot and what it was measured by.
func (p *page) figure(f reportFile) {
	fmt.Fprintf(p, "<figure>\n%s<figcaption><code>%s</code></figcaption>\n</figure>\n", f.text, xmlText(f.command))
}

// html is the report as a page that needs nothing else.
func (r *report) html(plots []reportFile) string {
	p := new(page)
	p.WriteString("<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n<meta charset=\"utf-8\"/>\n")
	p.element("title", "Benchmark of "+r.Machine.CPU)
	fmt.Fprintf(p, "<style>%s</style>\n</head>\n<body>\n", reportStyle)
	p.element("h1", "One-sided operations, measured")
	if r.Ended != "" {
		fmt.Fprintf(p, "<p class=\"ended\">This run ended early, and has only what came before: %s</p>\n", xmlText(r.Ended))
	}
	r.writeCircumstances(p)
	for _, lines := range r.caseLines() {
		c := lines[0].benchCase()
		p.element("h2", c.name+": "+c.about)
		for _, f := range plots {
			if f.of == c.name {
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
			p.element("h2", title)
		}
		p.figure(f)
		if f.name == "schemes.svg" {
			p.table(schemesTable(r.schemes.complete()))
		}
	}
	p.WriteString("</body>\n</html>\n")
	return p.String()
}

func (r *report) writeCircumstances(p *page) {
	rows := [][]string{
		{"of", "what"},
		{"processor", r.Machine.CPU}, {"cores", fmt.Sprint(r.Machine.Cores)}, {"system", r.Machine.System}, {"Go", r.Machine.Go},
		{"date", r.Date.Format(time.RFC1123Z)},
	}
	for _, o := range r.o.devices {
		if o.card == nil {
			rows = append(rows, []string{"ours", deviceAs(o.device, cmp.Or(o.ranks, 2))})
		}
	}
	for _, peer := range append(r.Peers, r.Missing...) {
		rows = append(rows, []string{"peer", peer})
	}
	p.table(rows)
	fmt.Fprintf(p, "<p><code>%s</code></p>\n", xmlText(r.Command))
	p.element("p", fmt.Sprintf("Each value is the median of its rounds, %d if none failed, each the best of %s. Percentiles are of the turns of a loop of its own, timed one by one or, if they are short, in batches, of which the means count; "+
		"they are at most 6 %% too long. results.txt has all rounds, for benchstat.", r.o.rounds, plural(reportLoops, "loop")))
}

// caseTable has a row for each size of each line.
func caseTable(lines []*reportLine) [][]string {
	unit := lines[0].benchCase().unit
	head := []string{"", "size", unit, "lowest", "highest", "rounds"}
	tails := false
	for _, l := range lines {
		for _, c := range l.cells {
			tails = tails || c.percentiles() != nil
		}
	}
	if tails {
		head = append(head, "p50", "p90", "p99", "p99.9", "max")
	}
	rows := [][]string{head}
	for _, l := range lines {
		for _, c := range l.cells {
			row := []string{l.name(), fmt.Sprint(c.size), value(c.Median), value(c.Min), value(c.Max), fmt.Sprint(len(c.known()))}
			if t := c.percentiles(); t != nil {
				for _, one := range t.each() {
					row = append(row, value(&one.value))
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

// leftOut tells which cells lack values, and why.
func leftOut(lines []*reportLine) []string {
	var notes []string
	for _, l := range lines {
		for _, c := range l.cells {
			notes = addNote(notes, fmt.Sprintf("%s, %s", spell(c.cell), l.name()), &c.column, len(c.Values))
		}
	}
	return notes
}

// schemesTable has a row for each scheme, with the value and the ratio of each pattern.
func schemesTable(patterns [][]result) [][]string {
	head := []string{"scheme"}
	for _, p := range patterns {
		head = append(head, p[0].cell()+", "+p[0].Unit, "ratio")
	}
	rows := [][]string{head}
	for i, s := range schemes() {
		row := []string{s.name}
		for _, p := range patterns {
			row = append(row, value(&p[i].Value), ratio(p[i].Ratio.Median))
		}
		rows = append(rows, row)
	}
	return rows
}
