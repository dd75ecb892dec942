package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/onesided/rma/bench/internal/cases"
	"github.com/onesided/rma/bench/internal/experiments/schemes"
	"github.com/onesided/rma/bench/internal/table"
	"github.com/onesided/rma/bench/internal/toggles"
)

// writeList writes the output of -list.
func writeList(w io.Writer) error {
	var b strings.Builder
	b.WriteString("cases (case, unit, sizes):\n")
	var lines [][]string
	for _, c := range cases.All() {
		lines = append(lines, []string{"  " + c.Name, c.Unit, strings.Join(strings.Fields(strings.Trim(fmt.Sprint(c.Sizes), "[]")), ","), c.About})
	}
	table.Align(&b, lines, func(int) bool { return false })
	b.WriteString("sizes are bytes of one operation, operations of one epoch or batch (1000), or ranks (barrier_lat, allreduce_scale, bcast_scale, fence_scale, create_time, idle_cpu).\n")
	b.WriteString("\nswitches for -set (the first value is the default; bench switches: each with both values in one run):\n")
	lines = nil
	for _, t := range toggles.All() {
		lines = append(lines, []string{"  " + t.Name + "=" + strings.Join(t.Values, "|"), t.About})
	}
	table.Align(&b, lines, func(int) bool { return false })
	b.WriteString("\nschemes (bench schemes: all in one run):\n")
	lines = nil
	for _, s := range schemes.All() {
		lines = append(lines, []string{"  " + s.Name, s.About})
	}
	table.Align(&b, lines, func(int) bool { return false })
	_, err := io.WriteString(w, b.String())
	return err
}
