package window_test

import (
	"fmt"
	"testing"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/scheduler"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/window/oracle"
)

// combine is what op makes of an element.
func combine(op window.Op, was, with int64) int64 {
	switch op {
	case window.Sum:
		return was + with
	case window.Product:
		return was * with
	case window.Max:
		return max(was, with)
	case window.Replace:
		return with
	default:
		return was
	}
}

// randomPrograms runs programs of package oracle, which tells what they may see, so many in a plain run.
func randomPrograms(s *script, count int, limits oracle.Limits, options func(seed uint64) oracle.Options) {
	limits.Ranks = s.World.Size()
	for seed := range testsize.Seeds(count) {
		p, o := oracle.Draw(seed, limits), options(seed)
		if testsize.Race && p.ShortAtomics() {
			continue
		}
		if err := oracle.Run(s.Ctx, s.World, p, o); err != nil {
			s.OK(fmt.Errorf("%d ranks, without %#x, the first of its job in %s: %w\n%s", s.World.Size(), o.Without, testsize.Replay("TestOracle", seed, oracleSizes), err, p))
		}
	}
}

var (
	programs = register("random programs", func(s *script) {
		randomPrograms(s, 10, oracle.Limits{}, func(uint64) oracle.Options { return oracle.Options{Concurrent: true} })
	})
	// Accumulates of one element to windows this large are held back.
	large = register("random programs in large windows", func(s *script) {
		randomPrograms(s, 2, oracle.Limits{Windows: 1, Elements: 1 << 17}, func(uint64) oracle.Options { return oracle.Options{} })
	})
	// Each way to arrange operations is left out, and all of them.
	arranged = register("random programs, arranged otherwise", func(s *script) {
		ways := []scheduler.Scheme{
			scheduler.All, scheduler.Defer, scheduler.GetsFirst, scheduler.Interleave, scheduler.Pack, scheduler.Merge, scheduler.Early, scheduler.Adapt,
		}
		randomPrograms(s, 16, oracle.Limits{}, func(seed uint64) oracle.Options {
			return oracle.Options{Without: ways[seed%uint64(len(ways))], Concurrent: true}
		})
	})
)

// oracleSizes is the size from which on all numbers of ranks of TestOracle run. Which ones a smaller run has depends on its
// first seed.
const oracleSizes = 3

// TestOracle runs random programs, as goroutines and as processes. Package oracle runs more.
func TestOracle(t *testing.T) {
	busy.Acquire(t)
	for turn, name := range []string{programs, large} {
		jobtest.InTurns(t, turn, name, 1, 2, 4)
	}
	t.Run("arranged otherwise", func(t *testing.T) { jobtest.Apart(t, 3, arranged); jobtest.TCP(t, 3, arranged) })
}
