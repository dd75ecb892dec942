package scale

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/onesided/rma/bench/internal/table"
)

// A Growth is a workload on increasing numbers of ranks.
type Growth struct {
	Workload string  `json:"workload"`
	Device   string  `json:"device"`
	Points   []Point `json:"points"`
	// Time is the law by which the time grows.
	Time   law    `json:"time"`
	Memory memory `json:"memory"`
}

// A memory describes how the memory of a rank depends on the number of ranks. It falls at first, because a rank's
// memory for each related rank is smaller the more ranks there are.
type memory struct {
	// Least is the least memory of a rank, Ranks the number of ranks at that point.
	Ranks int     `json:"ranks"`
	Least float64 `json:"least"`
	// More is the increase for each further rank, as far as was measured. It is 0 if nothing further was measured.
	More float64 `json:"more"`
}

// lawFrom is the least number of ranks for a law. With fewer ranks not all have the full number of related ranks.
const lawFrom = 16

// judge finds the laws, if there are enough points.
func (g *Growth) judge() {
	var n, micros []float64
	m := &g.Memory
	for _, p := range g.Points {
		if p.Ranks < lawFrom {
			continue
		}
		n, micros = append(n, float64(p.Ranks)), append(micros, p.Micros)
		if m.Ranks == 0 || p.Bytes < m.Least {
			m.Ranks, m.Least = p.Ranks, p.Bytes
		}
	}
	if last := g.Points[len(g.Points)-1]; m.Ranks > 0 && last.Ranks > m.Ranks {
		m.More = (last.Bytes - m.Least) / float64(last.Ranks-m.Ranks)
	}
	if len(n) >= fewest {
		g.Time = fit(n, micros)
	}
}

// fewest is the number of points that a law needs.
const fewest = 3

var noLaw = fmt.Sprintf("too few points: a law needs %d numbers of ranks, each %d or more", fewest, lawFrom)

func (m *memory) describe() string {
	if m.Ranks == 0 {
		return noLaw
	}
	text := fmt.Sprintf("%.0f KB at %d ranks, where it is least", m.Least/1e3, m.Ranks)
	if m.More > 0 {
		text += fmt.Sprintf("; from there on %.0f bytes more for each further rank", m.More)
	}
	return text
}

// A law is Base + Slope*log2(n), or Base + Slope*n.
type law struct {
	Base  float64 `json:"base"`
	Slope float64 `json:"slope"`
	// Linear is set for the second form.
	Linear bool `json:"linear"`
	// Off is the greatest distance of a point from the law, as a fraction of the point.
	Off float64 `json:"off"`
	// Known is set if there were enough points.
	Known bool `json:"known"`
}

// fit returns the law of the two that is closest to values at n, by least squares.
func fit(n, values []float64) law {
	logs := make([]float64, len(n))
	for i := range n {
		logs[i] = math.Log2(n[i])
	}
	logarithmic, byLog := leastSquares(logs, values)
	linear, byN := leastSquares(n, values)
	if byN < byLog {
		linear.Linear = true
		return linear
	}
	return logarithmic
}

// leastSquares returns the line closest to y, and the remaining squares.
func leastSquares(x, y []float64) (l law, left float64) {
	var sx, sy, sxx, sxy float64
	for i := range x {
		sx, sy, sxx, sxy = sx+x[i], sy+y[i], sxx+x[i]*x[i], sxy+x[i]*y[i]
	}
	n := float64(len(x))
	l.Known = true
	l.Slope = (n*sxy - sx*sy) / (n*sxx - sx*sx)
	l.Base = (sy - l.Slope*sx) / n
	for i := range x {
		off := l.Base + l.Slope*x[i] - y[i]
		left += off * off
		l.Off = max(l.Off, math.Abs(off/y[i]))
	}
	return l, left
}

// describe describes the law in words.
func (l law) describe(unit string) string {
	if !l.Known {
		return noLaw
	}
	of := "log2 n"
	if l.Linear {
		of = "n"
	}
	sign, slope := "+", l.Slope
	if slope < 0 {
		sign, slope = "-", -slope
	}
	return fmt.Sprintf("%.4g %s %.3g %s %s, within %.0f %%", l.Base, sign, slope, of, unit, 100*l.Off)
}

func writeJSON(w io.Writer, all []*Growth) error {
	encoder := json.NewEncoder(w)
	for _, g := range all {
		if err := encoder.Encode(g); err != nil {
			return err
		}
	}
	return nil
}

// write writes a table, and the laws.
func write(w io.Writer, command string, all []*Growth) error {
	var b strings.Builder
	fmt.Fprintln(&b, command)
	fmt.Fprintln(&b, "iteration and set up in virtual time; frames that a rank sends in an iteration; memory of a rank, its simulated card included; real time of an event")
	lines := [][]string{{"workload", "ranks", "iteration us", "frames", "set up us", "memory KB", "event ns"}}
	for _, g := range all {
		for _, p := range g.Points {
			lines = append(lines, []string{g.Workload, fmt.Sprint(p.Ranks), fmt.Sprintf("%.2f", p.Micros), fmt.Sprintf("%.1f", p.Frames),
				fmt.Sprintf("%.1f", p.Start), fmt.Sprintf("%.1f", p.Bytes/1e3), fmt.Sprintf("%.0f", p.EventNanos)})
		}
	}
	table.Align(&b, lines, func(i int) bool { return i > 0 })
	fmt.Fprintf(&b, "\ngrowth among n ranks, from %d on:\n", lawFrom)
	lines = nil
	for _, g := range all {
		lines = append(lines, []string{"  " + g.Workload, "time", g.Time.describe("us")}, []string{"", "memory", g.Memory.describe()})
	}
	table.Align(&b, lines, func(int) bool { return false })
	_, err := io.WriteString(w, b.String())
	return err
}
