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

// These are the programs of testdata. Each program of keptScripts has failed once. The programs of combined together
// have every mode, call and element type.
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

// A scripted is a form for scripts whose ranks are goroutines or processes. Virtual time has runSimulated instead.
type scripted struct {
	name string
	run  func(t *testing.T, n int, name string)
	// least is the least number of ranks of the scripts that run on this form.
	least int
	// kept and combined are the bodies that run the scripts of testdata.
	kept, combined string
}

var scriptedForms = func() []scripted {
	all := []scripted{
		{name: "goroutines", run: jobtest.Goroutines}, {name: "apart", run: jobtest.Apart},
		{name: "processes", run: jobtest.Processes}, {name: "tcp", run: jobtest.TCP},
		// Two ranks on two hosts are the same as two ranks over TCP.
		{name: "hosts", run: jobtest.Hosts, least: 3},
	}
	for i := range all {
		f := &all[i]
		f.kept = jobtest.Register("scripts on "+f.name, runScripts(keptScripts, i+1))
		f.combined = jobtest.Register("combinations on "+f.name, runScripts(combined, i+1))
	}
	return all
}()

// scriptTurns is the number of combinations of the scheduler's switches in a plain run, for each script on each form: a
// sixteenth of all. With a size of 16 or more all combinations run.
const scriptTurns = 8

// formsOfScripts is the number of forms of scripts, including virtual time.
const formsOfScripts = 6

// replayScripts explains how to run a script again under the combination with which it has failed.
const replayScripts = "replay with RMA_TEST_SIZE=16, which has all combinations, and -run of this test"

// combinations returns the combinations of the scheduler's switches for a script on a form. Scripts and forms take
// turns: in a plain run six scripts on all forms run under each combination twice.
func combinations(script, form int) (all []scheduler.Scheme) {
	every := max(1, switches/uint64(testsize.N(scriptTurns)))
	for without := range switches {
		if (without+testsize.Seed()+uint64(script*formsOfScripts+form))%every == 0 {
			all = append(all, scheduler.Scheme(without))
		}
	}
	return all
}

// runScripts returns a body that runs the scripts for its number of ranks, one after the other. Under each combination
// the members of one script are goroutines, and those of the next one take turns.
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

// runSimulated runs scripts in virtual time. The simulated machines take turns.
func runSimulated(t *testing.T, all []script) {
	for i, s := range all {
		for _, without := range combinations(i, 0) {
			seed := uint64(i) + uint64(without)
			err := runOn(t.Context(), simulated(seed, nil), s.program, oracle.Options{Without: without})
			require.NoError(t, err, "%s, without %#x, seed %d\n%s", s.name, without, seed, replayScripts)
		}
	}
}

// TestCombinations runs the same programs on all forms and under all combinations of the scheduler's switches. The
// model must allow the outcome of each. Each program runs under its share of the combinations on each form.
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

// TestCombinationsHaveAll checks that the programs of TestCombinations have every mode, every element type, and short
// and long operations. They must have every call in a legal step.
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
