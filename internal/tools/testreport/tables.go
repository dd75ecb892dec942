package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

// save appends outcomes to a file, one a line.
func save(path string, outcomes []outcome) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(file)
	lines := json.NewEncoder(out)
	for _, o := range outcomes {
		if err := lines.Encode(o); err != nil {
			_ = file.Close()
			return err
		}
	}
	if err := out.Flush(); err != nil {
		_ = file.Close()
		return err
	}
	return file.Close()
}

func load(path string) (outcomes []outcome, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	lines := json.NewDecoder(file)
	for lines.More() {
		var o outcome
		if err := lines.Decode(&o); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		outcomes = append(outcomes, o)
	}
	return outcomes, nil
}

// tables prints the skipped tests, by reason, and the n slowest tests.
func tables(out io.Writer, outcomes []outcome, n int) error {
	buffered := bufio.NewWriter(out)
	skipped(buffered, outcomes)
	slowest(buffered, outcomes, n)
	return buffered.Flush()
}

// skipped prints each reason once, with the tests that were skipped for it and their numbers of subtests.
func skipped(out io.Writer, outcomes []outcome) {
	by := make(map[string]map[string]int)
	for _, o := range outcomes {
		if o.Test == "" || o.Action != "skip" {
			continue
		}
		reason := cmp.Or(o.Reason, "no reason was given")
		if by[reason] == nil {
			by[reason] = make(map[string]int)
		}
		top, _, isSubtest := strings.Cut(o.Test, "/")
		if o.Package == script {
			top, isSubtest = o.Test, false
		}
		name := shortName(o.Package) + " " + top
		by[reason][name] += 0
		if isSubtest {
			by[reason][name]++
		}
	}
	fmt.Fprintf(out, "\nskipped tests, by reason: %d reasons\n", len(by))
	for _, reason := range slices.Sorted(maps.Keys(by)) {
		fmt.Fprintf(out, "  %s\n", reason)
		for _, name := range slices.Sorted(maps.Keys(by[reason])) {
			switch n := by[reason][name]; n {
			case 0:
				fmt.Fprintf(out, "      %s\n", name)
			case 1:
				fmt.Fprintf(out, "      %s, 1 subtest\n", name)
			default:
				fmt.Fprintf(out, "      %s, %d subtests\n", name, n)
			}
		}
	}
}

// slowest prints the n slowest top-level tests.
func slowest(out io.Writer, outcomes []outcome, n int) {
	var whole []outcome
	sum := 0.0
	for _, o := range outcomes {
		if o.Test != "" && o.Package != script && !strings.Contains(o.Test, "/") {
			whole = append(whole, o)
			sum += o.Seconds
		}
	}
	slices.SortStableFunc(whole, func(a, b outcome) int { return cmp.Compare(b.Seconds, a.Seconds) })
	shown := whole[:min(n, len(whole))]
	part := 0.0
	for _, o := range shown {
		part += o.Seconds
	}
	fmt.Fprintf(out, "\nthe %d slowest of %d tests: %.0f of %.0f s\n", len(shown), len(whole), part, sum)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "seconds\tprocessor s\tin processes it started\t\t")
	for _, o := range shown {
		own, others := "?", "?"
		if o.Processor >= 0 {
			own, others = fmt.Sprintf("%.2f", o.Processor), fmt.Sprintf("%.2f", o.Others)
		}
		fmt.Fprintf(table, "%.2f\t%s\t%s\t%s\t  %s %s\n", o.Seconds, own, others, verdict(o), shortName(o.Package), o.Test)
	}
	_ = table.Flush()
}

// waiting is the ratio of processor time to time below which a test counts as waiting.
const waiting = 0.3

// verdict says what takes a test's time.
func verdict(o outcome) string {
	switch {
	case o.Processor < 0:
		return ""
	case o.Processor+o.Others < waiting*o.Seconds:
		return "waits"
	case o.Others > o.Processor:
		return "its processes compute"
	}
	return "computes"
}

// shortName returns a package's path within the module.
func shortName(name string) string {
	return strings.TrimPrefix(strings.TrimPrefix(name, "github.com/onesided/rma"), "/")
}
