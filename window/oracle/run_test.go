package oracle_test

import (
	"context"
	"flag"
	"fmt"
	"math/bits"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/scheduler"
	"github.com/onesided/rma/window/oracle"
	"github.com/onesided/rma/world"
)

var (
	programs = flag.Int("programs", 0, "how many random programs each test runs; 0 is some, one for each combination of the scheduler's switches")
	seed     = flag.Uint64("seed", 0, "the first of their seeds")
)

// The seeds are handed to ranks that are processes in the environment.
const (
	programsVariable = "RMA_ORACLETEST_PROGRAMS"
	seedVariable     = "RMA_ORACLETEST_SEED"
	// atOnce is how many programs a job of processes runs.
	atOnce = 256
	// patience is how long a program may take.
	patience = 30 * time.Second
)

func TestMain(m *testing.M) { jobtest.Main(m) }

// optionsOf are the options of the program of a seed: each combination of the scheduler's
// switches has its turn, half of them with members that are goroutines, and the next time the
// other half.
func optionsOf(seed uint64) oracle.Options {
	return oracle.Options{Without: scheduler.Scheme(seed) & scheduler.All, Concurrent: bits.OnesCount64(seed)&1 == 0}
}

// A start starts the ranks of a job in this process.
type start func(ctx context.Context, n int, body func(ctx context.Context, w *world.World) error) error

func goroutines(ctx context.Context, n int, body func(ctx context.Context, w *world.World) error) error {
	return world.Run(ctx, n, body)
}

// debugged starts ranks whose windows look for misuse: these programs have none.
func debugged(ctx context.Context, n int, body func(ctx context.Context, w *world.World) error) error {
	return world.Run(ctx, n, body, world.WithDebug())
}

// apart starts ranks that map no memory of each other.
func apart(ctx context.Context, n int, body func(ctx context.Context, w *world.World) error) error {
	return world.Run(ctx, n, body, jobtest.OptionsApart()...)
}

// cards starts ranks over cards with atomics, which are coherent with processors or not.
func cards(coherent bool) start {
	return func(ctx context.Context, n int, body func(ctx context.Context, w *world.World) error) error {
		return world.Run(ctx, n, body, jobtest.OptionsCards(coherent)...)
	}
}

// runOn runs a program.
func runOn(ctx context.Context, on start, p *oracle.Program, o oracle.Options) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return on(ctx, p.Ranks, func(ctx context.Context, w *world.World) error { return oracle.Run(ctx, w, p, o) })
}

// TestPrograms runs random programs on ranks of this process. One that fails it shrinks.
func TestPrograms(t *testing.T) {
	for _, c := range []struct {
		name   string
		on     start
		limits oracle.Limits
	}{
		{"goroutines", goroutines, oracle.Limits{}}, {"apart", apart, oracle.Limits{}}, {"debugged", debugged, oracle.Limits{}},
		{"no cards", goroutines, oracle.Limits{CardAtomics: true}},
		{"cards", cards(false), oracle.Limits{CardAtomics: true}}, {"coherent cards", cards(true), oracle.Limits{CardAtomics: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			on := c.on
			for s := *seed; s < *seed+uint64(count(128)); s++ {
				p, o := oracle.Draw(s, c.limits), optionsOf(s)
				if raced && p.ShortAtomics() {
					continue
				}
				err := runOn(t.Context(), on, p, o)
				if err == nil {
					continue
				}
				small := oracle.Shrink(p, func(p *oracle.Program) bool {
					for range 3 {
						if runOn(t.Context(), on, p, o) != nil {
							return true
						}
					}
					return false
				})
				t.Fatalf("-seed %d, without %#x: %v\nthe same, in\n%s", s, o.Without, err, small)
			}
		})
	}
}

// count is how many programs a test runs: few, if no flag says so.
func count(few int) int {
	if *programs > 0 {
		return *programs
	}
	return few
}

// fromEnvironment is a number that the test has handed to this process.
func fromEnvironment(name string) uint64 {
	n, _ := strconv.ParseUint(os.Getenv(name), 10, 64)
	return n
}

// drawn runs the programs of some seeds, for as many ranks as there are. A third of them has windows
// with CardAtomics, and on processes that have network cards with atomics all have.
var (
	drawn        = jobtest.Register("random programs", runDrawn)
	drawnOnCards = jobtest.RegisterWith("random programs on cards", jobtest.OptionsCardsOfProcesses(false), runDrawn)
)

func runDrawn(ctx context.Context, w *world.World) error {
	first := fromEnvironment(seedVariable)
	own, _ := w.CardAtomics()
	for s := first; s < first+fromEnvironment(programsVariable); s++ {
		p, o := oracle.Draw(s, oracle.Limits{Ranks: w.Size(), CardAtomics: own || s%3 == 1}), optionsOf(s)
		if raced && p.ShortAtomics() {
			continue
		}
		if err := oracle.Run(ctx, w, p, o); err != nil {
			return fmt.Errorf("-seed %d on %d ranks, without %#x: %w\n%s", s, w.Size(), o.Without, err, p)
		}
	}
	return nil
}

// TestProcesses runs random programs on ranks that are processes: all of one host, without
// shared memory, and on two hosts, with network cards too.
func TestProcesses(t *testing.T) {
	for _, form := range []struct {
		name  string
		ranks int
		run   func(t *testing.T, n int, name string)
		body  string
	}{{"shared memory", 3, jobtest.Processes, drawn}, {"tcp", 3, jobtest.TCP, drawn}, {"hosts", 4, jobtest.Hosts, drawn}, {"hosts with cards", 4, jobtest.Hosts, drawnOnCards}} {
		t.Run(form.name, func(t *testing.T) {
			for left, s := count(128), *seed; left > 0; left, s = left-atOnce, s+atOnce {
				t.Setenv(programsVariable, fmt.Sprint(min(left, atOnce)))
				t.Setenv(seedVariable, fmt.Sprint(s))
				form.run(t, form.ranks, form.body)
			}
		})
	}
}
