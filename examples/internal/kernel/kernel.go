package kernel

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/onesided/rma/internal/interrupt"
	"github.com/onesided/rma/world"
)

// A Kernel is a command.
type Kernel struct {
	// Name is the name of the command, About a phrase, More paragraphs for -h.
	Name, About, More string
	// Flags defines the flags besides -ranks.
	Flags func(f *Flags)
	// Check returns an error if the flags are wrong in a job of ranks ranks. It may be nil.
	Check func(ranks int) error
	// Lacks returns an error if rank 0's machine lacks something that the run needs. It may be nil. It is called on
	// rank 0 only; on an error all ranks end.
	Lacks func() error
	// Run is the body of each rank.
	Run func(ctx context.Context, r *Rank) error
}

// ErrVerification is wrapped by the error of a Run whose results are wrong.
var ErrVerification = errors.New("verification failed")

// errUsage is the class of errors of the command line.
var errUsage = errors.New("wrong usage")

// errLacks is the error of the other ranks if rank 0 lacks something.
var errLacks = errors.New("rank 0 lacks what the run needs")

// mostRanks bounds -ranks.
const mostRanks = 4096

// Flags are the flags of a command.
type Flags struct{ *flag.FlagSet }

// Number defines a flag for a number within bounds. The initial value of *into is the default.
func (f *Flags) Number(into *int, name string, least, most int, usage string) {
	f.Func(name, fmt.Sprintf("%s, %d to %d (default %d)", usage, least, most, *into), func(s string) error {
		n, err := strconv.Atoi(s)
		if err != nil || n < least || n > most {
			return fmt.Errorf("must be a number from %d to %d", least, most)
		}
		*into = n
		return nil
	})
}

// Choice defines a flag for one of several names. *chosen is set to the index of the value; its initial value is the
// default. The usage names the value in back quotes, as in [flag.PrintDefaults].
func (f *Flags) Choice(name, usage string, names []string, chosen *int) {
	last := len(names) - 1
	all := strings.Join(names[:last], ", ") + " or " + names[last]
	f.Func(name, fmt.Sprintf("%s: %s (default %s)", usage, all, names[*chosen]), func(s string) error {
		i := slices.Index(names, s)
		if i < 0 {
			return fmt.Errorf("must be %s", all)
		}
		*chosen = i
		return nil
	})
}

// Main carries out the command line of this process, and ends the process.
func Main(k *Kernel) {
	ctx, _ := interrupt.Context(context.Background(), os.Interrupt, syscall.SIGTERM)
	os.Exit(k.Command(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// Command carries out a command line as a rank of the job for which this process was started. It returns the exit
// status: 0; 1 if the kernel or its verification has failed; 2 for wrong usage.
func (k *Kernel) Command(ctx context.Context, arguments []string, out, errout io.Writer) int {
	ranks := 0
	flags := k.flags(&ranks)
	wrong := flags.Parse(arguments)
	if wrong == nil && flags.NArg() > 0 {
		wrong = fmt.Errorf("%q: there are flags only", flags.Arg(0))
	}
	logger := slog.New(slog.NewTextHandler(errout, &slog.HandlerOptions{Level: slog.LevelWarn}))
	w, err := world.Init(ctx, world.WithLogger(logger))
	if err != nil && wrong == nil {
		fmt.Fprintf(errout, "%s: %v\n", k.Name, err)
		return 1
	}
	if wrong == nil && ranks > 0 && w.Size() > 1 {
		wrong = fmt.Errorf("-ranks %d in a job of %d ranks: leave it out under a launcher", ranks, w.Size())
	}
	if wrong == nil && k.Check != nil {
		wrong = k.Check(max(ranks, w.Size()))
	}
	if wrong == nil && k.Lacks != nil {
		wrong, err = k.lacking(ctx, w)
	}
	if wrong != nil {
		return k.explain(wrong, w, out, errout)
	}
	switch {
	case err != nil:
	case ranks > 1:
		err = errors.Join(w.Close(), world.Run(ctx, ranks, func(ctx context.Context, w *world.World) error {
			return k.run(ctx, w, out, errout)
		}))
	default:
		err = k.run(ctx, w, out, errout)
	}
	if err != nil {
		fmt.Fprintf(errout, "%s: %v\n", k.Name, err)
		return 1
	}
	return 0
}

// lacking returns an error on all ranks if rank 0 lacks something.
func (k *Kernel) lacking(ctx context.Context, w *world.World) (wrong, err error) {
	if w.Rank() == 0 {
		wrong = k.Lacks()
	}
	lacks := []bool{wrong != nil}
	if err := world.Broadcast(ctx, w, 0, lacks); err != nil {
		return wrong, err
	}
	if lacks[0] && wrong == nil {
		wrong = errLacks
	}
	return wrong, nil
}

// run runs one rank. A rank that has failed does not close its World, so the other ranks learn of the failure.
func (k *Kernel) run(ctx context.Context, w *world.World, out, errout io.Writer) error {
	r := Of(w, out)
	if w.Rank() == 0 {
		r.bar = newBar(errout)
	}
	err := k.Run(ctx, r)
	r.erase()
	if err == nil || errors.Is(err, ErrVerification) || w.Size() == 1 {
		err = errors.Join(err, w.Close())
	}
	return err
}

// explain prints the help, or the error of the command line, on one rank.
func (k *Kernel) explain(wrong error, w *world.World, out, errout io.Writer) int {
	speaks := w == nil || w.Rank() == 0
	if w != nil {
		defer w.Close()
	}
	help := errors.Is(wrong, flag.ErrHelp)
	switch {
	case help && speaks:
		k.help(out)
	case speaks:
		fmt.Fprintf(errout, "%s: %v: %v\n%[1]s -h explains the usage\n", k.Name, errUsage, wrong)
	}
	if help {
		return 0
	}
	return 2
}

func (k *Kernel) flags(ranks *int) *Flags {
	flags := &Flags{flag.NewFlagSet(k.Name, flag.ContinueOnError)}
	flags.SetOutput(io.Discard)
	flags.Func("ranks", fmt.Sprintf("run `n` ranks as goroutines of this process, 1 to %d; not under a launcher", mostRanks), func(s string) error {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > mostRanks {
			return fmt.Errorf("must be a number from 1 to %d", mostRanks)
		}
		*ranks = n
		return nil
	})
	k.Flags(flags)
	return flags
}

func (k *Kernel) help(to io.Writer) {
	fmt.Fprintf(to, `usage: %[1]s [flags]

%[2]s. Start the ranks by rmarun, or give -ranks:

  go run ./cmd/rmarun -n 4 ./examples/%[1]s
  go run ./examples/%[1]s -ranks 4

`, k.Name, k.About)
	if k.More != "" {
		fmt.Fprintf(to, "%s\n\n", k.More)
	}
	fmt.Fprintln(to, "flags:")
	var ranks int
	flags := k.flags(&ranks)
	flags.SetOutput(to)
	flags.PrintDefaults()
	fmt.Fprint(to, "\nexit status: 0; 1 if the verification failed, or the job; 2 for wrong usage\n")
}

// A Rank is a rank of the job.
type Rank struct {
	*world.World
	// Out receives the results of rank 0. On other ranks output is dropped.
	Out io.Writer
	// bar is nil if the progress is not shown.
	bar *bar
}

func (r *Rank) erase() {
	if r.bar != nil {
		r.bar.erase()
	}
}

// Of returns the rank of w. Its results go to out if it is rank 0.
func Of(w *world.World, out io.Writer) *Rank {
	if w.Rank() != 0 {
		out = io.Discard
	}
	return &Rank{World: w, Out: out}
}

// Result prints a result if this is rank 0.
func (r *Rank) Result(name string, value float64, unit string) {
	r.erase()
	text := strconv.FormatFloat(value, 'g', 6, 64)
	if value == math.Trunc(value) && math.Abs(value) < 1<<53 {
		text = strconv.FormatFloat(value, 'f', 0, 64)
	}
	fmt.Fprintf(r.Out, "%-20s %14s %s\n", name, text, unit)
}
