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
	"github.com/onesided/rma/scheduler"
	"github.com/onesided/rma/window/oracle"
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

// fewVariable tells ranks that are processes that few combinations are enough.
const fewVariable = "RMA_ORACLETEST_FEW"

// combinations are those of the scheduler's switches: all, or, where few are enough, none left
// out, all, each alone, and all but each.
func combinations(few bool) (all []scheduler.Scheme) {
	ways := bits.OnesCount(uint(scheduler.All))
	for without := scheduler.Scheme(0); ; without++ {
		if n := bits.OnesCount(uint(without)); !few || n <= 1 || n >= ways-1 {
			all = append(all, without)
		}
		if without == scheduler.All {
			return all
		}
	}
}

// runScripts runs the scripts of as many ranks as there are, under combinations of the
// scheduler's switches, one after the other. Each combination is run with members that are
// goroutines, or with such as take turns, and by the next script with the other.
func runScripts(pattern string) jobtest.Body {
	return func(ctx context.Context, w *world.World) error {
		all, err := scripts(pattern)
		if err != nil {
			return err
		}
		turn := 0
		for _, s := range all {
			if s.program.Ranks != w.Size() {
				continue
			}
			for _, without := range combinations(os.Getenv(fewVariable) != "") {
				o := oracle.Options{Without: without, Concurrent: (bits.OnesCount(uint(without))+turn)&1 == 0}
				if err := oracle.Run(ctx, w, s.program, o); err != nil {
					return fmt.Errorf("%s, without %#x, concurrent %v: %w", s.name, o.Without, o.Concurrent, err)
				}
			}
			turn++
		}
		return nil
	}
}

var (
	kept       = jobtest.Register("scripts", runScripts(keptScripts))
	everywhere = jobtest.Register("combinations", runScripts(combined))
)

// few tells whether a test runs few combinations, and has ranks that are processes do so.
func few(t *testing.T) bool {
	if raced || testing.Short() {
		t.Setenv(fewVariable, "1")
		return true
	}
	return false
}

// TestCombinations runs the same programs on all devices, under all combinations of the
// scheduler's switches: the outcome of each has to be one that the model allows.
func TestCombinations(t *testing.T) {
	all, err := scripts(combined)
	require.NoError(t, err)
	few := few(t)
	every := combinations(few)
	require.True(t, few || len(every) == 128)
	forRanks := map[int]int{}
	for _, s := range all {
		require.False(t, s.program.ShortAtomics(), "the race detector is to see all of them")
		forRanks[s.program.Ranks]++
	}
	require.Equal(t, map[int]int{2: 2, 3: 2, 4: 2}, forRanks)

	t.Run("sim", func(t *testing.T) { simulateScripts(t, all, every) })
	for n := range forRanks {
		t.Run(fmt.Sprintf("goroutines/%d", n), func(t *testing.T) { jobtest.Goroutines(t, n, everywhere) })
		t.Run(fmt.Sprintf("apart/%d", n), func(t *testing.T) { jobtest.Apart(t, n, everywhere) })
		t.Run(fmt.Sprintf("processes/%d", n), func(t *testing.T) { jobtest.Processes(t, n, everywhere) })
		t.Run(fmt.Sprintf("tcp/%d", n), func(t *testing.T) { jobtest.TCP(t, n, everywhere) })
	}
}

// simulateScripts runs scripts in virtual time under combinations. Machines take turns.
func simulateScripts(t *testing.T, all []script, every []scheduler.Scheme) {
	for i, s := range all {
		for _, without := range every {
			seed := uint64(i) + uint64(without)
			err := runOn(t.Context(), simulated(seed, nil), s.program, oracle.Options{Without: without})
			require.NoError(t, err, "%s, without %#x, seed %d", s.name, without, seed)
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
	every := combinations(few(t))
	ranks := map[int]bool{}
	for _, s := range all {
		ranks[s.program.Ranks] = true
	}
	for n := range ranks {
		t.Run(fmt.Sprint(n), func(t *testing.T) { jobtest.Run(t, n, kept) })
	}
	t.Run("sim", func(t *testing.T) { simulateScripts(t, all, every) })
}
