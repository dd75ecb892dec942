package regression

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/onesided/rma/bench/internal/cli"
	"github.com/onesided/rma/bench/internal/gate"
)

const (
	// alarm and miss are the error rates of the gate: of calling a cell slower that is not, and of passing a
	// cell that is.
	alarm = 0.01
	miss  = 0.05
	// usualMinutes are enough to decide most cells on two cores that other programs use, too. Ten leave a third undecided
	// there.
	usualMinutes = 20.0
	// mostRounds bounds the computation of a look.
	mostRounds = 200
)

// options are the command line after the word.
type options struct {
	against string
	plan    gate.Plan
	cells   []cell
	verbose bool
}

// draw keeps n of the cells, in their order, if n is less than all.
func (o *options) draw(n int) {
	if n == 0 || n >= len(o.cells) {
		return
	}
	drawn := rand.New(rand.NewPCG(o.plan.Seed, 0)).Perm(len(o.cells))[:n]
	slices.Sort(drawn)
	var cells []cell
	for _, i := range drawn {
		cells = append(cells, o.cells[i])
	}
	o.cells = cells
}

// parse reads the command line. It writes the help, if requested, to usage.
func parse(args []string, usage io.Writer) (*options, error) {
	o := &options{plan: gate.Plan{Limit: 0.05, Slice: slice, Alarm: alarm, Miss: miss, Seed: 1}, cells: allCells()}
	minutes, some := usualMinutes, 0
	flags := flag.NewFlagSet("bench gate", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.against, "against", "", "the earlier `commit`, by any name that git knows")
	flags.IntVar(&o.plan.Rounds, "rounds", 60, "the greatest number of rounds of a cell")
	flags.Float64Var(&minutes, "minutes", minutes, "the longest that the measurements may take together; building comes before. The default decides most cells on a busy machine of two cores")
	flags.Func("limit", "how many `percent` slower a cell may be (default 5)", func(text string) error {
		limit, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(text, "%")), 64)
		o.plan.Limit = limit / 100
		return err
	})
	flags.Func("cells", "measure only the cells that this `regexp` matches; -h lists them", func(text string) error {
		pattern, err := regexp.Compile(text)
		if err != nil {
			return err
		}
		o.cells = slices.DeleteFunc(allCells(), func(c cell) bool { return !pattern.MatchString(c.cell().String()) })
		return nil
	})
	flags.IntVar(&some, "some", 0, "measure `N` cells, drawn by -seed, in a run that is too short to decide all (default all)")
	flags.Uint64Var(&o.plan.Seed, "seed", o.plan.Seed, "the `seed` of the order of measurements and of the cells of -some")
	flags.BoolVar(&o.verbose, "v", false, "print each measurement to the standard error")
	err := flags.Parse(args)
	o.plan.Time = time.Duration(minutes * float64(time.Minute))
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(usage, "usage: go run ./bench gate -against COMMIT [flags]")
		fmt.Fprintln(usage, "Fails if a cell is slower than it was at an earlier commit. It builds bench of that commit, in a git worktree of its")
		fmt.Fprintln(usage, "own that it removes, and of this work tree as it is. It measures them alternately, and the earlier one twice, for the noise,")
		fmt.Fprintln(usage, "in rounds until each cell is decided. A cell that -rounds or -minutes leave undecided is no failure: the table says")
		fmt.Fprintln(usage, "what slowdown would have been found. If more than a third of the measured cells are undecided, the run fails, because it")
		fmt.Fprintln(usage, "can say nothing. Cells in virtual time (sim) are exact, and are measured once. A measurement that fails is repeated once.")
		fmt.Fprintf(usage, "If no cell is slower by more than the limit, a run calls one slower with a probability of %g %% at most. A cell that is\n", 100*alarm)
		fmt.Fprintf(usage, "slower than that is ok with a probability of %g %% at most. Both hold for a change that multiplies the cost. Cells:\n", 100*miss)
		for _, c := range allCells() {
			fmt.Fprintln(usage, "  "+c.cell().String())
		}
		flags.SetOutput(usage)
		flags.PrintDefaults()
		fmt.Fprint(usage, "\nexit status: 0; 1 if a cell is slower, too many are undecided, something failed or ended it early; 2 for wrong usage\n")
		return nil, err
	case err != nil:
		return nil, cli.Usagef("%v; -h lists the flags", err)
	case flags.NArg() > 0:
		return nil, cli.Usagef("%s: gate takes flags only; -cells chooses cells", flags.Arg(0))
	case o.against == "":
		return nil, cli.Usagef("gate needs -against COMMIT")
	case some < 0:
		return nil, cli.Usagef("-some %d: allowed are 1 or more, and 0 for all", some)
	case len(o.cells) == 0:
		return nil, cli.Usagef("-cells matches no cell; -h lists them")
	case o.plan.Rounds < 1 || o.plan.Rounds > mostRounds:
		return nil, cli.Usagef("-rounds %d: allowed are 1 to %d", o.plan.Rounds, mostRounds)
	case !(minutes > 0 && minutes <= 1e5):
		return nil, cli.Usagef("-minutes %g: more than 0", minutes)
	case !(o.plan.Limit > 0 && o.plan.Limit <= 10):
		return nil, cli.Usagef("-limit %g: allowed are percents above 0, up to 1000", 100*o.plan.Limit)
	}
	o.draw(some)
	noisy := len(slices.DeleteFunc(slices.Clone(o.cells), func(c cell) bool { return c.cell().Exact }))
	if err := o.plan.Check(noisy); err != nil {
		return nil, cli.Usagef("-rounds %d: %v", o.plan.Rounds, err)
	}
	return o, nil
}
