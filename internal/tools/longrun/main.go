// Command longrun runs the checks that take too long for every change; docs/testing.md lists them. They include random
// programs and faults with new seeds, fuzzing, the race detector over everything, and the gate for speed.
//
//	.ci/long [-minutes N] [-seed S] [-against REV] [-part REGEXP]
//
// Without -minutes each part runs once to its end. With it the parts share the time, and a part that is not finished
// by then is cut. The seed determines the order within a part, and the samples that the tests draw. A failure prints
// the command that repeats it. The last lines are a summary, one line a part. It begins with "ok" only if each command
// of the part has ended at least once, and with "cut" if the time was too short for that.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/onesided/rma/internal/interrupt"
)

func main() {
	check := flag.Bool("check", false, "only check the other flags")
	minutes := flag.Float64("minutes", 0, "how long all parts may take together; 0 for as long as each takes once")
	seed := flag.Uint64("seed", 0, "the seed of orders and samples; 0 takes one from the clock")
	against := flag.String("against", "HEAD~1", "the `revision` whose speed is the measure")
	only := flag.String("part", "", "run the parts whose names match this `regexp`")
	flag.CommandLine.Init("long", flag.ContinueOnError)
	flag.Usage = func() {}
	switch err := flag.CommandLine.Parse(os.Args[1:]); {
	case errors.Is(err, flag.ErrHelp):
		help(os.Stdout)
		return
	case err != nil:
		fmt.Fprintln(os.Stderr, "long: -h lists the flags")
		os.Exit(2)
	}
	ctx, stop := interrupt.Context(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	failed, err := long(ctx, options{minutes: *minutes, seed: *seed, against: *against, only: *only, check: *check, arguments: flag.Args()})
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "long:", err)
		os.Exit(2)
	case failed:
		os.Exit(1)
	}
}

func help(out io.Writer) {
	fmt.Fprint(out, "usage: .ci/long [-minutes N] [-seed S] [-against REV] [-part REGEXP]\n\n"+
		"It runs the tests that are too long for every change, and prints a summary, a line a part: \"ok\" if each of its commands\n"+
		"has ended, \"cut\" if the time was too short for that, FAIL if one has failed, and \"skipped\". Its exit status is 1 if\n"+
		"one has failed, and 2 if nothing could be run.\n\n")
	flag.CommandLine.SetOutput(out)
	flag.PrintDefaults()
	fmt.Fprint(out, "\nThe parts are:\n")
	for _, p := range plan(project{}, 0, "REV") {
		fmt.Fprintln(out, "  "+p.name)
	}
}

type options struct {
	minutes       float64
	seed          uint64
	against, only string
	check         bool
	arguments     []string
}

var (
	errArguments = errors.New("no arguments are possible beside flags; -h lists them")
	errMinutes   = errors.New("-minutes must not be negative")
	errSeed      = fmt.Errorf("-seed must not be above %d", uint64(mostSeed))
	errRevision  = errors.New("git knows no such commit; name one by -against REV, or parts that need none by -part REGEXP")
	errPart      = errors.New("no part has a name that matches")
)

func long(ctx context.Context, o options) (failed bool, err error) {
	if len(o.arguments) > 0 {
		return false, errArguments
	}
	if !(o.minutes >= 0) {
		return false, errMinutes
	}
	if o.seed > mostSeed {
		return false, errSeed
	}
	pattern, err := regexp.Compile(o.only)
	if err != nil {
		return false, fmt.Errorf("-part: %w", err)
	}
	if o.seed == 0 {
		o.seed = uint64(time.Now().Unix())
	}
	project, err := inspect(ctx)
	if err != nil {
		return false, err
	}
	var parts []part
	for _, p := range plan(project, o.seed, o.against) {
		if pattern.MatchString(p.name) {
			parts = append(parts, p)
		}
	}
	if len(parts) == 0 {
		return false, fmt.Errorf("-part %q: %w", o.only, errPart)
	}
	// The part that needs it is the last one.
	if strings.HasPrefix(parts[len(parts)-1].name, speedAgainst) && exec.CommandContext(ctx, "git", "rev-parse", "--quiet", "--verify", o.against+"^{commit}").Run() != nil {
		return false, fmt.Errorf("-against %s: %w", o.against, errRevision)
	}
	if o.check {
		return false, nil
	}
	fmt.Printf("seed %d: %s repeats this\n", o.seed, o.command())
	r := runner{out: os.Stdout, execute: execute, now: time.Now}
	failed = r.run(ctx, parts, time.Duration(o.minutes*float64(time.Minute)))
	return failed, context.Cause(ctx)
}

// command returns the command line that repeats this run.
func (o options) command() string {
	words := []string{".ci/long", "-seed", fmt.Sprint(o.seed), "-against", o.against}
	if o.minutes > 0 {
		words = append(words, "-minutes", fmt.Sprint(o.minutes))
	}
	if o.only != "" {
		words = append(words, "-part", "'"+strings.ReplaceAll(o.only, "'", `'\''`)+"'")
	}
	return strings.Join(words, " ")
}
