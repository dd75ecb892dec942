package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// An event is a line of go test -json, as go doc test2json describes it.
type event struct {
	Time       time.Time
	Action     string
	Package    string
	ImportPath string
	Test       string
	Elapsed    float64
	Output     string
	Key, Value string
}

// An outcome is the result of a test without subtests, or of a test with all of them.
type outcome struct {
	Package string
	Test    string `json:",omitempty"`
	// Action is pass, fail or skip.
	Action string
	// Seconds is the time that the test ran. It excludes waits for a turn to run in parallel, in t.Parallel or for a
	// limit of its own (see package jobtest).
	Seconds float64
	// Processor is the processor time of the package's test binary while the test ran, and Others that of its child
	// processes. Tests that run in parallel share both. They are negative if they were not measured.
	Processor, Others float64
	// Reason is why the test was skipped.
	Reason string `json:",omitempty"`
}

// A span is a time in which a test ran.
type span struct{ from, to time.Time }

// A test is a test that has begun.
type test struct {
	spans   []span
	running bool
	// output is the output of the test.
	output []string
}

// A reader reads go test's events.
type reader struct {
	out io.Writer
	// failed reports whether a test or a build has failed.
	failed bool
	tests  map[[2]string]*test
	// printed has the output of a package and its failing tests, until the package ends.
	printed map[string]*strings.Builder
	ended   []outcome
	spans   map[[2]string][]span
}

func newReader(out io.Writer) *reader {
	return &reader{out: out, tests: make(map[[2]string]*test), printed: make(map[string]*strings.Builder), spans: make(map[[2]string][]span)}
}

// read reads events to the end. Lines that are no events are shown unchanged.
func (r *reader) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		// A line has no bound: it may have the stacks of many goroutines, and go test waits until it is read.
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) == nil {
				r.take(e)
			} else {
				fmt.Fprintf(r.out, "%s\n", bytes.TrimSuffix(line, []byte("\n")))
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *reader) take(e event) {
	switch e.Action {
	case "build-output":
		fmt.Fprint(r.out, e.Output)
		return
	case "build-fail":
		r.failed = true
		return
	}
	if e.Test == "" {
		r.takePackage(e)
		return
	}
	key := [2]string{e.Package, e.Test}
	t := r.tests[key]
	if t == nil {
		t = new(test)
		r.tests[key] = t
	}
	switch e.Action {
	case "run", "cont":
		t.begin(e.Time)
	case "pause":
		t.end(e.Time)
	case "attr":
		switch {
		case e.Key == "limit" && e.Value == "awaited":
			t.end(e.Time)
		case e.Key == "limit" && e.Value == "acquired":
			t.begin(e.Time)
		}
	case "output":
		t.output = append(t.output, e.Output)
	case "pass", "fail", "skip":
		if e.Action == "fail" {
			r.failed = true
			r.print(e.Package, t.output)
		}
		t.end(e.Time)
		delete(r.tests, key)
		o := outcome{Package: e.Package, Test: e.Test, Action: e.Action, Seconds: total(t.spans).Seconds(), Processor: -1, Others: -1}
		if e.Action == "skip" {
			o.Reason = reason(t.output)
		}
		r.ended, r.spans[key] = append(r.ended, o), t.spans
	}
}

// takePackage handles an event of a package as a whole: its line, or its end.
func (r *reader) takePackage(e event) {
	switch e.Action {
	case "output":
		if isSummary(e.Output, e.Package) {
			r.show(e.Package, strings.HasPrefix(e.Output, "FAIL"))
			fmt.Fprint(r.out, e.Output)
			return
		}
		r.print(e.Package, []string{e.Output})
	case "pass", "skip":
		delete(r.printed, e.Package)
		r.ended = append(r.ended, outcome{Package: e.Package, Action: e.Action, Seconds: e.Elapsed})
	case "fail":
		r.failed = true
		r.show(e.Package, true)
		r.ended = append(r.ended, outcome{Package: e.Package, Action: e.Action, Seconds: e.Elapsed})
	}
}

// isSummary reports whether a line is go test's own about a package: a word, the package, and the result.
func isSummary(line, name string) bool {
	word, rest, _ := strings.Cut(line, "\t")
	rest, ok := strings.CutPrefix(rest, name)
	return ok && slices.Contains([]string{"ok", "FAIL", "?"}, strings.TrimRight(word, " ")) && strings.Trim(rest[:min(1, len(rest))], "\t \n") == ""
}

// print keeps lines that are shown if the package fails.
func (r *reader) print(name string, lines []string) {
	printed := r.printed[name]
	if printed == nil {
		printed = new(strings.Builder)
		r.printed[name] = printed
	}
	for _, line := range lines {
		printed.WriteString(line)
	}
}

// show prints the output of a package's failing and unfinished tests if the package failed. It then forgets all of
// it.
func (r *reader) show(name string, failed bool) {
	if failed {
		for key, t := range r.tests {
			if key[0] == name {
				r.print(name, t.output)
				delete(r.tests, key)
			}
		}
		if printed := r.printed[name]; printed != nil {
			fmt.Fprint(r.out, printed)
		}
	}
	delete(r.printed, name)
}

func (t *test) begin(at time.Time) {
	if !t.running {
		t.running, t.spans = true, append(t.spans, span{from: at})
	}
}

func (t *test) end(at time.Time) {
	if t.running {
		t.running, t.spans[len(t.spans)-1].to = false, at
	}
}

func total(spans []span) (sum time.Duration) {
	for _, s := range spans {
		sum += s.to.Sub(s.from)
	}
	return sum
}

// reason finds the reason for which a test was skipped: the text after the last "file.go:12: ", and the following
// lines with a deeper indent.
func reason(lines []string) (why string) {
	var deeper string
	for _, line := range lines {
		indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
		file, text, ok := strings.Cut(line, ": ")
		switch {
		case deeper != "" && strings.HasPrefix(line, deeper):
			why += " " + strings.TrimSpace(line)
		case ok && strings.Contains(file, ".go:"):
			why, deeper = strings.TrimPrefix(strings.TrimSpace(text), "skipped: "), indent+"    "
		default:
			deeper = ""
		}
	}
	return why
}

// outcomes returns all outcomes, with processor times if there are samples.
func (r *reader) outcomes(samples map[string][]sample) []outcome {
	for i := range r.ended {
		o := &r.ended[i]
		if of := samples[o.Package]; o.Test != "" && len(of) > 0 {
			o.Processor, o.Others = 0, 0
			for _, s := range r.spans[[2]string{o.Package, o.Test}] {
				from, to := at(of, s.from), at(of, s.to)
				o.Processor += (to.own - from.own).Seconds()
				o.Others += max(0, (to.others - from.others).Seconds())
			}
		}
	}
	return r.ended
}
