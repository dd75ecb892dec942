package report

import (
	"fmt"
	"strings"

	"github.com/onesided/rma/bench/internal/chart"
)

// A page is the HTML of a report as it grows.
type page struct {
	strings.Builder
	sections []string
}

// reportStyle is for light backgrounds and for printing.
const reportStyle = `body{font:15px/1.45 sans-serif;color:#222;background:#fff;max-width:60em;margin:2em auto;padding:0 1em}
h1{font-size:1.6em}h2{font-size:1.25em;margin-top:2em;border-bottom:1px solid #ccc}
table{border-collapse:collapse;font-size:13px;margin:1em 0}th,td{padding:2px 9px;border-bottom:1px solid #ddd;text-align:right;white-space:nowrap}
th{background:#f4f4f4}th:first-child,td:first-child{text-align:left}
code{font-size:12px;background:#f4f4f4;padding:1px 3px;overflow-wrap:anywhere}svg{max-width:100%;height:auto}
.ended{border:2px solid #b5541c;padding:.5em 1em}
@media print{body{margin:0;max-width:none}figure,svg,tr{break-inside:avoid}}figure{margin:1em 0}`

// element writes an element with text only.
func (p *page) element(name, text string) {
	fmt.Fprintf(p, "<%s>%s</%s>\n", name, chart.XMLText(text), name)
}

// table writes rows, the first of which is the head.
func (p *page) table(rows [][]string) {
	p.WriteString("<table>\n")
	for i, row := range rows {
		name := "td"
		if i == 0 {
			name = "th"
		}
		p.WriteString("<tr>")
		for _, text := range row {
			fmt.Fprintf(p, "<%s>%s</%s>", name, chart.XMLText(text), name)
		}
		p.WriteString("</tr>\n")
	}
	p.WriteString("</table>\n")
}

// figure writes a plot and the command that measures it.
func (p *page) figure(f file) {
	fmt.Fprintf(p, "<figure>\n%s<figcaption><code>%s</code></figcaption>\n</figure>\n", f.text, chart.XMLText(f.command))
}

// heading writes a heading of a section and adds it to the contents.
func (p *page) heading(text string) {
	p.sections = append(p.sections, text)
	fmt.Fprintf(p, "<h2 id=\"s%d\">%s</h2>\n", len(p.sections), chart.XMLText(text))
}

// contents returns links to the sections.
func (p *page) contents() string {
	var b strings.Builder
	b.WriteString("<nav>\n<ul>\n")
	for i, text := range p.sections {
		fmt.Fprintf(&b, "<li><a href=\"#s%d\">%s</a></li>\n", i+1, chart.XMLText(text))
	}
	b.WriteString("</ul>\n</nav>\n")
	return b.String()
}
