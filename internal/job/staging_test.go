package job_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/internal/simtest"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/internal/tuning"
	"github.com/onesided/rma/world"
)

// longOnes makes calls with messages about as long as those that are staged, of several pieces and odd lengths, and
// longer than all that a rank stages at once. The number of ranks decides which a plain run has.
func longOnes(s *script) {
	lengths := []int{4095, 8192, 4096, 8193 * s.n, 4097, 40_001}
	for _, i := range testsize.Turns(s.n+int(testsize.Seed()/3%6), len(lengths), 2) {
		k := lengths[i]
		for _, call := range longs.calls(s, k%s.n, k) {
			call()
		}
	}
	for _, call := range colors.calls(s, 0, 11_111) {
		call()
	}
	for _, call := range planes.calls(s, s.n-1, 5_003) {
		call()
	}
	if s.n > 3 {
		return
	}
	longest := []int{1, 5, 6, 8, 9}
	for _, i := range testsize.Turns(s.n, len(longest), 1) {
		longs.calls(s, 0, 140_001)[longest[i]]()
	}
}

func init() {
	for name, algorithm := range algorithms {
		with := func() ([]world.Option, error) { return []world.Option{byAlgorithm(algorithm)}, nil }
		jobtest.RegisterWith("long ones: "+name, with, scripted(longOnes))
	}
	register("long ones, hasty", func(s *script) {
		s.hasty = true
		longOnes(s)
	})
}

func TestLongMessages(t *testing.T) {
	busy.Acquire(t)
	for i, name := range algorithmNames {
		t.Run(name, func(t *testing.T) {
			for k, n := range []int{2, 3, 5} {
				if n == 5 && testsize.Race || !testsize.Turn(i+k, 3) {
					continue
				}
				require.NoError(t, world.Run(t.Context(), n, scripted(longOnes), byAlgorithm(algorithms[name])), "%d ranks", n)
			}
			if testsize.Turn(i, 4) {
				jobtest.Apart(t, 3, "long ones: "+name)
			}
			if testsize.Turn(i+1, 4) {
				jobtest.Processes(t, 3, "long ones: "+name)
			}
			if testsize.Turn(i+2, 4) && !testsize.Race {
				jobtest.Hosts(t, 4, "long ones: "+name)
			}
			if testsize.Turn(i+3, 4) {
				jobtest.TCP(t, 3, "long ones: "+name)
			}
		})
	}
	t.Run("not staged", func(t *testing.T) {
		require.NoError(t, world.Run(t.Context(), 3, scripted(longOnes), job.Tune(func(t *tuning.Tuning) { t.NoStaging = true })))
	})
	t.Run("in virtual time", func(t *testing.T) {
		for i, staging := range []bool{true, false} {
			if testsize.Turn(i, 2) {
				require.NoError(t, world.Simulate(t.Context(), simtest.New(t, "ndr-2024", 1), 3, scripted(longOnes), job.Tune(func(t *tuning.Tuning) { t.NoStaging = !staging })))
			}
		}
	})
	t.Run("hasty", func(t *testing.T) {
		inForms(t, someForms(0, 3, 1), 3, "long ones, hasty")
	})
}

// Long calls allocate nothing either, once ranks have what they stage in.
func TestLongCallsAllocateNothing(t *testing.T) {
	for _, n := range []int{2, 5} {
		t.Run(fmt.Sprintf("%d ranks", n), func(t *testing.T) {
			allocateNothing(t, n, func(s *script, _ int) func() error {
				in, out, data := make([]float64, 30_001), make([]float64, 30_001), make([]byte, 100_000)
				return func() error {
					if err := world.AllReduceOp(s.Ctx, s.World, in, out, world.Sum); err != nil {
						return err
					}
					return world.Broadcast(s.Ctx, s.World, 1, data)
				}
			})
		})
	}
}
