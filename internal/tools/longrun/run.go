package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// skipStatus is the exit status of a command that cannot run on this machine.
const skipStatus = 77

// A verdict is the result of a unit.
type verdict int

const (
	passed verdict = iota
	failed
	// cut: the part's time was over before the unit ended.
	cut
	skipped
)

func (v verdict) String() string { return [...]string{"ok", "FAIL", "cut", "skipped"}[v] }

// A runner runs parts and reports on them.
type runner struct {
	out io.Writer
	// execute runs a unit until it ends or the context does, and returns its output.
	execute func(ctx context.Context, u unit) (verdict, string)
	now     func() time.Time
}

// A result is the summary of a part.
type result struct {
	part
	counts [4]int
	rounds int
	// complete reports whether each unit of the first round has ended by itself.
	complete bool
	// left is the number of units of the first round that did not begin.
	left int
	took time.Duration
	// reason is the reason why units were skipped.
	reason string
}

// run runs the parts one after the other. If all is not 0, they share that time, and the others get what a part
// leaves.
func (r *runner) run(ctx context.Context, parts []part, all time.Duration) (hasFailed bool) {
	begin := r.now()
	weights := 0.0
	for _, p := range parts {
		weights += p.weight
	}
	var results []result
	for _, p := range parts {
		var slice time.Duration
		if all > 0 {
			slice = time.Duration(float64(all-r.now().Sub(begin)) * p.weight / weights)
			slice = max(slice, 1)
		}
		weights -= p.weight
		fmt.Fprintf(r.out, "\n== %s\n", p.name)
		results = append(results, r.part(ctx, p, slice))
	}
	fmt.Fprintln(r.out)
	for _, s := range results {
		fmt.Fprintln(r.out, s)
		hasFailed = hasFailed || s.counts[failed] > 0
	}
	return hasFailed
}

// part runs a part: once to its end if slice is 0, otherwise for that time.
func (r *runner) part(ctx context.Context, p part, slice time.Duration) result {
	s := result{part: p}
	begin := r.now()
	if slice > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, slice)
		defer cancel()
	}
	for ; s.rounds == 0 || ctx.Err() == nil && slice > 0 && p.repeats; s.rounds++ {
		units := p.round(round{s.rounds, slice})
		for i, u := range units {
			if ctx.Err() != nil {
				if s.rounds == 0 {
					s.left = len(units) - i
				}
				break
			}
			start := r.now()
			v, output := r.execute(ctx, u)
			s.counts[v]++
			fmt.Fprintf(r.out, "%s\t%s\t%.1fs\n", v, u.name, r.now().Sub(start).Seconds())
			switch {
			case v == failed:
				fmt.Fprintf(r.out, "%s\nrepeat it by: %s\n", strings.TrimRight(unremarkable.ReplaceAllString(output, ""), "\n"), u.replay())
			case u.shown:
				fmt.Fprintln(r.out, strings.TrimRight(output, "\n"))
			case v == skipped:
				s.reason = lastLine(output)
				fmt.Fprintln(r.out, s.reason)
			}
		}
		if s.rounds == 0 {
			s.complete = s.left == 0 && s.counts[cut] == 0
		}
		if s.counts[skipped] > 0 && s.counts[passed]+s.counts[failed] == 0 {
			// Rounds of skipped units take no time.
			break
		}
	}
	s.took = r.now().Sub(begin)
	return s
}

// String returns the line of the summary. Its first word is "ok" only if each unit of the first round has ended.
func (s result) String() string {
	word := "ok"
	switch {
	case s.counts[failed] > 0:
		word = "FAIL"
	case !s.complete:
		word = "cut"
	case s.counts[passed] == 0:
		word = "skipped"
	}
	line := fmt.Sprintf("%-7s %-32s %4d passed, %d failed, %d cut, %d not begun, %d skipped, %v", word, s.name,
		s.counts[passed], s.counts[failed], s.counts[cut], s.left, s.counts[skipped], s.took.Round(time.Second))
	if s.reason != "" {
		line += ": " + s.reason
	}
	return line
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// grace is the time in which a command must end what it has started, once it is to end.
const grace = 10 * time.Second

// execute runs a unit as a separate process group, which ends with ctx.
func execute(ctx context.Context, u unit) (verdict, string) {
	if u.lacks != "" {
		return skipped, u.lacks
	}
	var output bytes.Buffer
	c := exec.CommandContext(ctx, u.command[0], u.command[1:]...)
	c.Env = append(os.Environ(), u.environment...)
	c.Stdout, c.Stderr = &output, &output
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGTERM) }
	c.WaitDelay = grace
	err := c.Run()
	if c.Process != nil && ctx.Err() != nil {
		// Processes that have outlived the signal are no longer needed.
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
	}
	return judge(ctx, u, err, output.String())
}

var (
	// unremarkable matches lines of go test -v that say nothing of a failure.
	unremarkable = regexp.MustCompile(`(?m)^ *(=== (RUN|PAUSE|CONT|NAME)|--- (PASS|SKIP):) .*\n`)
	// hasFailed matches the output of a failing go test as soon as it fails.
	hasFailed = regexp.MustCompile(`(?m)^( *--- FAIL: |panic: |fatal error: |WARNING: DATA RACE)`)
)

func judge(ctx context.Context, u unit, err error, output string) (verdict, string) {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return passed, output
	case ctx.Err() != nil && !hasFailed.MatchString(output):
		return cut, output
	case errors.As(err, &exit) && exit.ExitCode() == skipStatus:
		return skipped, output
	case errors.As(err, &exit) && u.passes != nil && u.passes(output):
		return passed, output
	case u.cut != nil && u.cut(output):
		return cut, output
	}
	return failed, output + err.Error() + "\n"
}
