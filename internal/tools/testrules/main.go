// Command testrules holds the rules of docs/testing.md that a program can check, in every test file and test package
// below the current directory. It prints a line for each breach, and then exits with status 1.
//
//   - No test waits for a time: time.Sleep, time.After, time.AfterFunc, time.Tick, time.NewTimer and time.NewTicker are
//     for package await alone. A line that stands for a program's own computing says so: "// computes".
//   - No limit is under a minute: one that ends a hang must not end a slow run. A context that is meant to end during
//     the test says so: "// expires".
//
// A limit is checked where it is a constant made of literals and of constants of the same package.
package main

import (
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "usage: testrules [DIRECTORY]\n\n"+
			"testrules prints where a test waits for a time, or has a limit under a minute.\n")
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
		fmt.Fprintf(os.Stderr, "testrules: %d breaches of the rules in docs/testing.md\n", n)
		os.Exit(1)
	}
}

// run checks all packages below root, and returns how many breaches it printed.
func run(out io.Writer, root string) (n int, err error) {
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if name := entry.Name(); path != root && (name == "testdata" || strings.HasPrefix(name, ".")) {
			return fs.SkipDir
		}
		breaches, err := check(path)
		for _, b := range breaches {
			fmt.Fprintln(out, b)
		}
		n += len(breaches)
		return err
	})
	return n, err
}
