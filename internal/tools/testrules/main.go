// Command testrules checks the rules of docs/testing.md that a program can check, in every test file and test package
// below a directory. It prints a line for each breach, and then exits with status 1.
//
//   - No test waits for a time: only package await may use time.Sleep, time.After, time.AfterFunc, time.Tick,
//     time.NewTimer and time.NewTicker. A line that stands for a program's own computing says so: "// computes".
//   - No limit is under a minute: one that ends a hang must not end a slow run. Limits are those of contexts, of
//     Eventually, of time.Now().Add, and those with which time.Since is compared. A limit that is meant to expire
//     during the test says so: "// expires".
//   - A test that is skipped says why. The reason begins with "skipped: ", by which tools recognize it.
//
// A test package imports package testing, or is imported by tests and test packages only. Packages are type-checked:
// a function is recognized by any name, and a constant by its value. A variable, a field or a parameter has each
// constant that its package assigns to it, except on lines that say "// expires". Files that this platform does not
// build are checked as far as their types are known.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "usage: testrules [DIRECTORY]\n\n"+
			"testrules prints where a test waits for a time, has a limit under a minute, or is skipped without a reason.\n")
	}
	flag.Parse()
	root := "."
	switch flag.NArg() {
	case 0:
	case 1:
		root = flag.Arg(0)
	default:
		flag.Usage()
		os.Exit(2)
	}
	n, err := run(os.Stdout, root)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testrules:", err)
		os.Exit(2)
	}
	if n > 0 {
		fmt.Fprintf(os.Stderr, "testrules: %d breaches of the rules in docs/testing.md\n"+
			"Wait for a state by await.True in a test, by await.Until in the body of a rank. A comment at the end of the line excuses\n"+
			"what stands for a program's own computing (// computes), and a limit that is meant to end in the test (// expires).\n", n)
		os.Exit(1)
	}
}

// run checks all packages of a module whose directory is root or below it, and returns the number of breaches that it
// printed.
func run(out io.Writer, root string) (n int, err error) {
	m, err := load(root)
	if err != nil {
		return 0, err
	}
	breaches, err := m.check()
	for _, b := range breaches {
		fmt.Fprintln(out, b)
	}
	return len(breaches), err
}
