package oracle_test

import (
	"context"
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/internal/oracle"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/scheduler"
	"github.com/onesided/rma/world"
)

// The programs of testdata. Those of kept have failed once; those of combinations have together
// every mode, call and element type.
const (
	keptScripts = "testdata/*.txt"
	combined    = "testdata/combinations/*.txt"
)

// A script is a program of testdata.
type script struct {
	name    string
	program *oracle.Program
}

func scripts(pattern string) (all []script, err error) {
	names, err := filepath.Glob(pattern)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		p, err := oracle.Parse(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, script{filepath.Base(name), p})
	}
	return all, nil
}

// A scripted is a form on which scripts run, with ranks that are goroutines or processes. In virtual time runSimulated
// runs them.
type scripted struct {
	name string
	run  func(t *testing.T, n int, name string)
	// least is how many ranks a script has at least that runs on this form.
	least int
	// kept and combined are the bodies that run the scripts of testdata.
	kept, combined string
}

var scriptedForms = func() []scripted {
	all := []scripted{
		{name: "goroutines", run: jobtest.Goroutines}, {name: "apart", run: jobtest.Apart},
		{name: "processes", run: jobtest.Processes}, {name: "tcp", run: jobtest.TCP},
		// Two ranks on two hosts are two that use TCP.
		{name: "hosts", run: jobtest.Hosts, least: 3},
	}
	for i := range all {
		f := &all[i]
		f.kept = jobtest.Register("scripts on "+f.name, runScripts(keptScripts, i+1))
		f.combined = jobtest.Register("combinations on "+f.name, runScripts(combined, i+1))
	}
	return all
}()

// scriptTurns is how many combinations of the scheduler's switches a plain run has for each script on each form: a
// sixteenth. From a size of 16 on all combinations run.
const scriptTurns = 8

// formsOfScripts is how many forms scripts have, with virtual time.
const formsOfScripts = 6

// replayScripts says how to run a script again under the combination with which it has failed.
const replayScripts = "replay with RMA_TEST_SIZE=16, which has all combinations, and -run of this test"

// combinations returns the combinations of the scheduler's switches that a script runs under on a form. Scripts and forms
// take turns: in a plain run six scripts on all forms run under each combination twice.
func combinations(script, form int) (all []scheduler.Scheme) {
	every := max(1, switches/uint64(testsize.N(scriptTurns)))
	for without := range switches {
		if (without+testsize.Seed()+uint64(script*formsOfScripts+form))%every == 0 {
			all = append(all, scheduler.Scheme(without))
		}
	}
	return all
}

// runScripts runs the scripts of as many ranks as there are on a form, one after the other. Each combination is run with
// members that are goroutines, or with such as take turns, and by the next script with the other.
func runScripts(pattern string, form int) jobtest.Body {
	return func(ctx context.Context, w *world.World) error {
		all, err := scripts(pattern)
		if err != nil {
			return err
		}
		for i, s := range all {
			if s.program.Ranks != w.Size() {
				continue
			}
			for _, without := range combinations(i, form) {
				o := oracle.Options{Without: without, Concurrent: (bits.OnesCount(uint(without))+i)&1 == 0}
				if err := oracle.Run(ctx, w, s.program, o); err != nil {
					return fmt.Errorf("%s, without %#x, concurrent %v: %w\n%s", s.name, o.Without, o.Concurrent, err, replayScripts)
				}
			}
		}
		return nil
	}
}

// runSimulated runs scripts in virtual time. Machines take turns.
func runSimulated(t *testing.T, all []script) {
	for i, s := range all {
		for _, without := range combinations(i, 0) {
			seed := uint64(i) + uint64(without)
			err := runOn(t.Context(), simulated(seed, nil), s.program, oracle.Options{Without: without})
			require.NoError(t, err, "%s, without %#x, seed %d\n%s", s.name, without, seed, replayScripts)
		}
	}
}

// TestCombinations runs the same programs on all forms, under all combinations of the scheduler's switches: the outcome
// of each has to be one that the model allows. Each program takes its share of the combinations on each form.
func TestCombinations(t *testing.T) {
	all, err := scripts(combined)
	require.NoError(t, err)
	forRanks := map[int]int{}
	for _, s := range all {
		require.False(t, s.program.ShortAtomics(), "the race detector is to see all of them")
		forRanks[s.program.Ranks]++
	}
	require.Equal(t, map[int]int{2: 2, 3: 2, 4: 2}, forRanks)
	t.Run("sim", func(t *testing.T) { runSimulated(t, all) })
	for n := range forRanks {
		for _, f := range scriptedForms {
			if n >= f.least {
				t.Run(fmt.Sprintf("%s/%d", f.name, n), func(t *testing.T) { f.run(t, n, f.combined) })
			}
		}
	}
}

// TestCombinationsHaveAll sees that the programs of TestCombinations have every mode, every call
// that is not only there to be refused, and every element type, with operations short and long.
func TestCombinationsHaveAll(t *testing.T) {
	all, err := scripts(combined)
	require.NoError(t, err)
	modes, calls, kinds := map[oracle.Mode]bool{}, map[oracle.Call]bool{}, map[reduce.Kind]bool{}
	long, short, loose, hasty, members := false, false, false, false, false
	for _, s := range all {
		for i := range s.program.Phases {
			f := &s.program.Phases[i]
			loose, hasty = loose || f.Loose, hasty || f.Hasty
			for j := range f.Syncs {
				modes[f.Syncs[j].Mode] = true
			}
			for j := range f.Steps {
				step := &f.Steps[j]
				if step.Refused {
					continue
				}
				calls[step.Call], members = true, members || step.Member > 0
				if step.Call.Operates() && step.Target != step.Rank {
					kinds[step.Kind] = true
					bytes := step.Count * step.Kind.Size()
					long, short = long || bytes >= 16<<10, short || bytes > 0 && bytes <= 64
				}
			}
		}
	}
	require.True(t, long && short && loose && hasty && members)
	for mode := oracle.Idle; mode <= oracle.AllLocked; mode++ {
		require.True(t, modes[mode], mode)
	}
	for call := oracle.Put; call < oracle.Fence; call++ {
		require.True(t, calls[call], call)
	}
	for kind := range reduce.Kinds {
		require.True(t, kinds[kind], kind)
	}
}

// TestScripts runs the programs that have failed once.
func TestScripts(t *testing.T) {
	all, err := scripts(keptScripts)
	require.NoError(t, err)
	ranks := map[int]bool{}
	for _, s := range all {
		ranks[s.program.Ranks] = true
	}
	t.Run("sim", func(t *testing.T) { runSimulated(t, all) })
	for n := range ranks {
		for _, f := range scriptedForms {
			if n >= f.least {
				t.Run(fmt.Sprintf("%s/%d", f.name, n), func(t *testing.T) { f.run(t, n, f.kept) })
			}
		}
	}
}
