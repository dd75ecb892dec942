package oracle

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// A defect is a way to make an execution wrong.
type defect struct {
	name   string
	mangle func(s *Step) (changed *Step, drop bool)
	// steps is the number of steps that are enough to show the defect.
	steps int
}

func with(s *Step, change func(s *Step)) *Step {
	changed := *s
	change(&changed)
	return &changed
}

var defects = []defect{
	{"an accumulate is lost", func(s *Step) (*Step, bool) { return s, s.Call == Accumulate && s.Fill%3 == 0 }, 3},
	{"a fetch is lost", func(s *Step) (*Step, bool) { return s, s.Call == FetchAndOp && !s.Refused }, 3},
	{"a put goes astray", func(s *Step) (*Step, bool) {
		if s.Call == Put && !s.Refused && s.At > 0 {
			return with(s, func(s *Step) { s.At-- }), false
		}
		return s, false
	}, 3},
	{"a put is short", func(s *Step) (*Step, bool) {
		if s.Call == Put && !s.Refused && s.Count > 4 {
			return with(s, func(s *Step) { s.Count-- }), false
		}
		return s, false
	}, 3},
	{"a layout is another", func(s *Step) (*Step, bool) {
		if s.Call == PutLayout && !s.Refused && s.To.Blocks > 1 && s.To.Stride > s.To.Length {
			return with(s, func(s *Step) { s.To.Stride-- }), false
		}
		return s, false
	}, 3},
	{"an operation is another", func(s *Step) (*Step, bool) {
		if s.Call.combines() && s.Op == window.Max && s.Call != CompareAndSwap && !s.Refused {
			return with(s, func(s *Step) { s.Op = window.Min }), false
		}
		return s, false
	}, 4},
	{"a swap does not compare", func(s *Step) (*Step, bool) {
		if s.Call == CompareAndSwap && !s.Refused {
			return with(s, func(s *Step) { s.Call, s.Op = FetchAndOp, window.Replace }), false
		}
		return s, false
	}, 3},
	{"what is illegal is done", func(s *Step) (*Step, bool) {
		if s.Refused && s.Call == Put {
			return with(s, func(s *Step) { s.At, s.Target, s.Count = 0, 0, 0 }), false
		}
		return s, false
	}, 1},
}

// TestDefects makes executions wrong. The oracle must detect that, and shrink the program to a few steps.
func TestDefects(t *testing.T) {
	for _, d := range defects {
		t.Run(d.name, func(t *testing.T) {
			wrong := func(p *Program) error {
				ctx, cancel := context.WithTimeout(t.Context(), await.Limit)
				defer cancel()
				return world.Run(ctx, p.Ranks, func(ctx context.Context, w *world.World) error {
					return Run(ctx, w, p, Options{mangle: d.mangle})
				})
			}
			for seed := range uint64(200) {
				p := Draw(seed, Limits{Ranks: 3})
				// A program counts if the defect is found in each of several runs, whatever the order in which ranks
				// run.
				found := func(p *Program) bool {
					for range 3 {
						if wrong(p) == nil {
							return false
						}
					}
					return true
				}
				if !found(p) {
					continue
				}
				small := Shrink(p, found)
				require.NoError(t, small.Check())
				require.Error(t, wrong(small))
				t.Logf("seed %d, %d steps shrunk to %d: %v\n%v", seed, p.Steps(), small.Steps(), wrong(small), small)
				require.LessOrEqual(t, small.Steps(), d.steps)
				require.LessOrEqual(t, len(small.Windows), 1)
				return
			}
			t.Fatal("no program has found it")
		})
	}
}
