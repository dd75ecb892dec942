package window_test

import (
	"fmt"
	"testing"

	"github.com/onesided/rma/internal/oracle"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/window"
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

// large runs random programs of package oracle, which judges their results, in windows so large that accumulates of one
// element are held back. That package runs programs in small ones, arranged in all ways.
var large = registerShared("random programs in large windows", []int{1, 2, 3, 4}, func(s *script) {
	limits := oracle.Limits{Ranks: s.World.Size(), Windows: 1, Elements: 1 << 17}
	for seed := range testsize.Seeds(2) {
		p := oracle.Draw(seed, limits)
		if testsize.Race && p.ShortAtomics() {
			continue
		}
		if err := oracle.Run(s.Ctx, s.World, p, oracle.Options{}); err != nil {
			s.OK(fmt.Errorf("%d ranks, the first of its body in %s: %w\n%s", s.World.Size(), testsize.Replay("TestOracle", seed, testsize.Least), err, p))
		}
	}
})

func TestOracle(t *testing.T) {
	busy.Acquire(t)
	runShared(t, large)
}
