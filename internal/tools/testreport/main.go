// Command testreport runs go test, or reads its JSON, and reports on it. It prints go test's own line for each
// package as it arrives, and all output of failing packages. At the end it lists the skipped tests with their
// reasons, and the slowest tests, with whether they compute or wait.
//
//	testreport run [-n 50] [-record FILE] -- go test ./...
//	go test -json ./... | testreport
//	testreport skip FILE STEP REASON
//	testreport tables FILE
//
// With run, the processor time of each test is known, its own and that of its child processes. With -record the
// report is appended to a file. tables prints the tables for all runs in a file together. skip adds a skipped step of
// a script to it. The exit status is that of go test. For JSON on standard input it is 1 if a test failed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"github.com/onesided/rma/internal/interrupt"
)

func usage() {
	fmt.Fprint(flag.CommandLine.Output(), `usage: testreport run [-n 50] [-record FILE] -- go test ARGUMENTS
       go test -json ARGUMENTS | testreport [-n 50] [-record FILE]
       testreport skip FILE STEP REASON
       testreport tables [-n 50] FILE

testreport shows go test's line for each package, what failing packages print, which tests were skipped
and why, and which were slowest and whether they compute or wait.

`)
	flag.PrintDefaults()
}

func main() {
	arguments := os.Args[1:]
	mode := ""
	if len(arguments) > 0 && slices.Contains([]string{"run", "skip", "tables", execMode}, arguments[0]) {
		mode, arguments = arguments[0], arguments[1:]
	}
	if mode == execMode {
		os.Exit(execute(arguments))
	}
	n := flag.Int("n", 50, "how many of the slowest tests to list")
	record := flag.String("record", "", "append the report to this `file` in place of printing tables")
	flag.Usage = usage
	// Parse ends the program on an error.
	_ = flag.CommandLine.Parse(arguments)
	ctx, stop := interrupt.Context(context.Background(), os.Interrupt, syscall.SIGTERM)
	status, err := report(ctx, mode, flag.Args(), *record, *n)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(2)
	}
	os.Exit(status)
}

// script stands for the package of a skipped step of a script.
const script = "script:"

var errUsage = errors.New("wrong arguments; -h tells the right ones")

func report(ctx context.Context, mode string, arguments []string, record string, n int) (status int, err error) {
	var outcomes []outcome
	switch {
	case mode == "tables" && len(arguments) == 1:
		if outcomes, err = load(arguments[0]); err != nil {
			return 0, err
		}
		return 0, tables(os.Stdout, outcomes, n)
	case mode == "skip" && len(arguments) == 3:
		return 0, save(arguments[0], []outcome{{Package: script, Test: arguments[1], Action: "skip", Reason: arguments[2]}})
	case mode == "run" && len(arguments) >= 2 && arguments[1] == "test":
		outcomes, status, err = run(ctx, os.Stdout, arguments)
	case mode == "" && len(arguments) == 0:
		r := newReader(os.Stdout)
		err = r.read(os.Stdin)
		if outcomes = r.outcomes(nil); r.failed {
			status = 1
		}
	default:
		return 0, errUsage
	}
	if err != nil {
		return 0, err
	}
	if record != "" {
		return status, save(record, outcomes)
	}
	return status, tables(os.Stdout, outcomes, n)
}

// patience is the time in which go test must end after an interrupt.
const patience = 10 * time.Second

// run runs a go test command with the flags that this program needs. When ctx ends, it interrupts the command and
// returns an error.
func run(ctx context.Context, out io.Writer, command []string) (outcomes []outcome, status int, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, 0, err
	}
	dir, err := os.MkdirTemp("", "testreport-")
	if err != nil {
		return nil, 0, err
	}
	defer os.RemoveAll(dir)
	// Go splits the value at spaces, except within quotes.
	wrapper := fmt.Sprintf("-exec='%s' %s '%s'", self, execMode, dir)
	c := exec.CommandContext(ctx, command[0], append([]string{"test", "-json", wrapper}, command[2:]...)...)
	c.Stderr, c.WaitDelay = os.Stderr, patience
	interruptible(c)
	output, err := c.StdoutPipe()
	if err != nil {
		return nil, 0, err
	}
	if err := c.Start(); err != nil {
		return nil, 0, err
	}
	r := newReader(out)
	failed := r.read(output)
	err = c.Wait()
	if ctx.Err() != nil {
		return nil, 0, context.Cause(ctx)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		status, err = max(1, exit.ExitCode()), nil
	}
	samples, loadErr := loadSamples(dir)
	return r.outcomes(samples), status, errors.Join(failed, err, loadErr)
}
