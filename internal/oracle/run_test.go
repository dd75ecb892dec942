package oracle_test

import (
	"context"
	"fmt"
	"math/bits"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/internal/oracle"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/scheduler"
	"github.com/onesided/rma/world"
)

func TestMain(m *testing.M) { jobtest.Main(m) }

// A form is a device and a way to start its ranks. A plain run spreads its random programs over all forms, and the
// combinations of the scheduler's switches, too.
type form uint64

const (
	onSim form = iota
	onSimCards
	onSimRails
	onGoroutines
	onApart
	onDebugged
	onNoCards
	onCards
	onCoherentCards
	onProcesses
	onTCP
	onHosts
	onHostsWithCards
	forms
)

const (
	// plainPrograms is the number of random programs on each form in a plain run.
	plainPrograms = 24
	// switches is the number of combinations of the scheduler's switches.
	switches = uint64(scheduler.All) + 1
	// stride is the distance between the first combinations of two forms. Together the forms run all combinations
	// when each runs stride programs.
	stride = switches/uint64(forms) + 1
	// seedsOfForm is the number of seeds that are reserved for a form.
	seedsOfForm = 1 << 40
)

// draw returns the program of a seed. The same seed gives another program on each form.
func (f form) draw(seed uint64, l oracle.Limits) *oracle.Program {
	return oracle.Draw(seed+uint64(f)*seedsOfForm, l)
}

// options returns the options for the program of a seed. The combinations of the scheduler's switches take turns. Half
// of them run with members that are goroutines, and the other half the next time. In virtual time a rank is one task.
func (f form) options(seed uint64) oracle.Options {
	turn := seed + uint64(f)*stride
	return oracle.Options{
		Without:    scheduler.Scheme(turn) & scheduler.All,
		Concurrent: f > onSimRails && bits.OnesCount64(turn)&1 == 0,
	}
}

// TestSpread checks that a plain run has enough random programs, all different, and every combination of the
// scheduler's switches.
func TestSpread(t *testing.T) {
	require.GreaterOrEqual(t, plainPrograms*uint64(forms), uint64(300))
	combinations, programs := map[scheduler.Scheme]bool{}, map[string]bool{}
	for f := range forms {
		for seed := range uint64(plainPrograms) {
			combinations[f.options(seed).Without] = true
		}
		programs[f.draw(0, oracle.Limits{}).String()] = true
	}
	require.Len(t, combinations, int(switches))
	require.Len(t, programs, int(forms))
}

// A start starts the ranks of a job in this process.
type start func(ctx context.Context, n int, body func(ctx context.Context, w *world.World) error) error

func goroutines(ctx context.Context, n int, body func(ctx context.Context, w *world.World) error) error {
	return world.Run(ctx, n, body)
}

// debugged starts ranks whose windows look for misuse. Legal programs contain none.
func debugged(ctx context.Context, n int, body func(ctx context.Context, w *world.World) error) error {
	return world.Run(ctx, n, body, world.WithDebug())
}

// apart starts ranks that map no memory of each other.
func apart(ctx context.Context, n int, body func(ctx context.Context, w *world.World) error) error {
	return world.Run(ctx, n, body, jobtest.OptionsApart()...)
}

// cards starts ranks with cards that have atomics, coherent with processors or not.
func cards(coherent bool) start {
	return func(ctx context.Context, n int, body func(ctx context.Context, w *world.World) error) error {
		return world.Run(ctx, n, body, jobtest.OptionsCards(coherent)...)
	}
}

// runOn runs a program.
func runOn(ctx context.Context, on start, p *oracle.Program, o oracle.Options) error {
	ctx, cancel := context.WithTimeout(ctx, await.Limit)
	defer cancel()
	return on(ctx, p.Ranks, func(ctx context.Context, w *world.World) error { return oracle.Run(ctx, w, p, o) })
}

// runPrograms runs the random programs of a form whose ranks are in this process. on returns how to start the ranks of
// a seed. A program that fails is shrunk. It counts as failing if one of tries runs fails.
func runPrograms(t *testing.T, f form, l oracle.Limits, tries int, on func(p *oracle.Program, seed uint64) start) {
	for seed := range testsize.Samples(t, plainPrograms) {
		p, o := f.draw(seed, l), f.options(seed)
		if testsize.Race && p.ShortAtomics() {
			continue
		}
		err := runOn(t.Context(), on(p, seed), p, o)
		if err == nil {
			continue
		}
		// The search ends in time for the report, even if the program hangs.
		ctx, cancel := context.WithTimeout(t.Context(), await.Limit)
		small := oracle.Shrink(p, func(p *oracle.Program) bool {
			for range tries {
				if err := runOn(ctx, on(p, seed), p, o); err != nil && ctx.Err() == nil {
					return true
				}
			}
			return false
		})
		cancel()
		t.Fatalf("seed %d: without %#x, concurrent %v: %v\nthe same, in\n%s", seed, o.Without, o.Concurrent, err, small)
	}
}

// TestPrograms runs random programs on ranks of this process.
func TestPrograms(t *testing.T) {
	for _, c := range []struct {
		name   string
		form   form
		on     start
		limits oracle.Limits
	}{
		{"goroutines", onGoroutines, goroutines, oracle.Limits{}},
		{"apart", onApart, apart, oracle.Limits{}},
		{"debugged", onDebugged, debugged, oracle.Limits{}},
		{"no cards", onNoCards, goroutines, oracle.Limits{CardAtomics: true}},
		{"cards", onCards, cards(false), oracle.Limits{CardAtomics: true}},
		{"coherent cards", onCoherentCards, cards(true), oracle.Limits{CardAtomics: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			runPrograms(t, c.form, c.limits, 3, func(*oracle.Program, uint64) start { return c.on })
		})
	}
}

const (
	// firstVariable tells ranks that are processes the number of the first program of their job.
	firstVariable = "RMA_ORACLETEST_FIRST"
	// atOnce is the number of programs that a job of processes runs.
	atOnce = 128
)

// processForms are the forms whose ranks are processes. A third of their programs have windows with CardAtomics. If the
// processes have network cards with atomics, all have.
var processForms = []struct {
	name  string
	form  form
	ranks int
	run   func(t *testing.T, n int, name string)
	body  string
}{
	{"shared memory", onProcesses, 3, jobtest.Processes, jobtest.Register("random programs", runDrawn(onProcesses))},
	{"tcp", onTCP, 3, jobtest.TCP, jobtest.Register("random programs over TCP", runDrawn(onTCP))},
	{"hosts", onHosts, 4, jobtest.Hosts, jobtest.Register("random programs on hosts", runDrawn(onHosts))},
	{"hosts with cards", onHostsWithCards, 4, jobtest.Hosts,
		jobtest.RegisterWith("random programs on hosts with cards", jobtest.OptionsCardsOfProcesses(false), runDrawn(onHostsWithCards))},
}

// runDrawn returns a body that runs the programs of a form, drawn for its number of ranks.
func runDrawn(f form) jobtest.Body {
	return func(ctx context.Context, w *world.World) error {
		first, err := strconv.Atoi(os.Getenv(firstVariable))
		if err != nil {
			return err
		}
		own, _ := job.Of(w).CardAtomics()
		for i := first; i < min(first+atOnce, testsize.N(plainPrograms)); i++ {
			seed := testsize.Seed() + uint64(i)
			p, o := f.draw(seed, oracle.Limits{Ranks: w.Size(), CardAtomics: own || seed%3 == 1}), f.options(seed)
			if testsize.Race && p.ShortAtomics() {
				continue
			}
			if err := oracle.Run(ctx, w, p, o); err != nil {
				return fmt.Errorf("%s: %d ranks, without %#x, concurrent %v: %w\n%s", testsize.Replay("TestProcesses", seed, testsize.Least), w.Size(), o.Without, o.Concurrent, err, p)
			}
		}
		return nil
	}
}

// TestProcesses runs random programs on processes: with shared memory, over TCP, and on two hosts with and without
// network cards.
func TestProcesses(t *testing.T) {
	for _, c := range processForms {
		t.Run(c.name, func(t *testing.T) {
			for first := 0; first < testsize.N(plainPrograms); first += atOnce {
				t.Setenv(firstVariable, strconv.Itoa(first))
				c.run(t, c.ranks, c.body)
			}
		})
	}
}
