package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
)

const usage = `usage: wordcount [flags] PATH...

Counts the words of the files under every PATH in a hash table that the ranks of a
job share. Start the ranks by rmarun, or give -ranks:

  go run ./cmd/rmarun -n 4 ./examples/wordcount -verify /usr/share/doc
  go run ./examples/wordcount -ranks 2 notes.txt

A word is a longest run of letters, decimal digits and underscores in UTF-8. Any other
character ends it, and so does a byte that is not UTF-8. Case matters. Words of more
than 1024 bytes are left out, and their number is printed.

Files with a NUL among the first 8 KiB are binary and are skipped, and so are
symbolic links, except a PATH, and what is neither file nor directory. Of a file that
grows what it had at the start is counted. What cannot be read is named, and the
others are counted. A file under two PATHs is counted twice.

flags:
`

const usageEnd = `
Words and totals go to standard output, in order of count, then of the word; they do not
depend on the number of ranks. Times, and names of what cannot be read, go to
standard error; on a terminal it shows the progress.

exit status: 0; 1 if a PATH does not exist, the table is full, a rank failed, a signal
  ended the job, or -verify found a difference; 2 for wrong usage.
`

// mostRanks bounds -ranks.
const mostRanks = 4096

// options are the options of the command line.
type options struct {
	top      int
	verify   bool
	progress bool
	ranks    int
	// distinct is the number of different words for which the table has room. 0 means an estimate.
	distinct int
	paths    []string
}

var errUsage = errors.New("wrong usage")

// parse reads the command line. It returns flag.ErrHelp if help was requested.
func parse(arguments []string) (*options, error) {
	o := &options{}
	flags := o.flags()
	err := flags.Parse(arguments)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errUsage, err)
	case flags.NArg() == 0:
		return nil, fmt.Errorf("%w: no PATH of a file or directory to count", errUsage)
	}
	o.paths = flags.Args()
	for _, path := range o.paths {
		if _, err := os.Lstat(path); err != nil && strings.HasPrefix(path, "-") {
			return nil, fmt.Errorf("%w: %s: flags come before the PATHs", errUsage, path)
		}
	}
	return o, nil
}

func (o *options) flags() *flag.FlagSet {
	flags := flag.NewFlagSet("wordcount", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	o.top = 20
	number(flags, &o.top, "top", 0, math.MaxInt32, "print the `n` most frequent words (default 20)")
	number(flags, &o.ranks, "ranks", 1, mostRanks, fmt.Sprintf("run `n` ranks as goroutines of this process, 1 to %d; not under a launcher", mostRanks))
	number(flags, &o.distinct, "distinct", 1, 1<<40, "make room for `n` different words (default: estimated from the size of the files)")
	flags.BoolVar(&o.verify, "verify", false, "count again in one process, without the library, and compare every word")
	flags.BoolVar(&o.progress, "progress", false, "show the progress also where standard error is no terminal, a line each second")
	return flags
}

// number adds a flag whose error says what is allowed.
func number(flags *flag.FlagSet, into *int, name string, least, most int, usage string) {
	flags.Func(name, usage, func(s string) error {
		n, err := strconv.Atoi(s)
		if err != nil || n < least || n > most {
			return fmt.Errorf("must be a number from %d to %d", least, most)
		}
		*into = n
		return nil
	})
}

// help writes the usage.
func help(to io.Writer) {
	fmt.Fprint(to, usage)
	flags := (&options{}).flags()
	flags.SetOutput(to)
	flags.PrintDefaults()
	fmt.Fprint(to, usageEnd)
}
