package job_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/world"
)

// repeat makes a call until it fails: one that only has to send may do well for a
// while.
func repeat(s *script, call func(s *script, ctx context.Context) error) error {
	for {
		if err := call(s, s.Ctx); err != nil {
			return err
		}
	}
}

// Rank 1 is killed or leaves; the others hear of it in the call that they are in,
// and in every later one, and can close.
func init() {
	for name, call := range waits {
		register("killed: "+name, func(s *script) {
			s.OK(s.World.Barrier(s.Ctx))
			jobtest.Signal("ready")
			if s.me == 1 {
				<-s.Ctx.Done()
			}
			s.Lost(repeat(s, call), 1)
			s.Lost(s.World.Err(1), 1)
			for _, later := range waits {
				s.Lost(later(s, s.Ctx), 1)
			}
			s.OK(s.World.Close())
		})
		register("left: "+name, func(s *script) {
			s.OK(s.World.Barrier(s.Ctx))
			if s.me == 1 {
				return
			}
			err := repeat(s, call)
			s.Lost(err, 1)
			s.Fails(err, world.ErrLeft)
			for _, later := range waits {
				s.Fails(later(s, s.Ctx), world.ErrLeft)
			}
			s.OK(s.World.Close())
		})
	}
}

// In a plain run each call is made by one of both numbers of ranks.
func TestKilled(t *testing.T) {
	busy.Acquire(t)
	for i, name := range slices.Sorted(maps.Keys(waits)) {
		for k, n := range []int{2, 5} {
			if !testsize.Turn(i+k, 2) {
				continue
			}
			t.Run(fmt.Sprintf("%s/%d ranks", name, n), func(t *testing.T) {
				jobtest.Start(t, n, "killed: "+name).Killed(1)
			})
		}
	}
}

func TestLeft(t *testing.T) {
	busy.Acquire(t)
	for i, name := range slices.Sorted(maps.Keys(waits)) {
		for k, n := range []int{2, 3, 6} {
			t.Run(fmt.Sprintf("%s/%d ranks", name, n), func(t *testing.T) {
				inForms(t, formsByTurn(i, k, n), n, "left: "+name)
			})
		}
	}
}

// A rank of Run that fails ends the others' calls.
func TestRankFails(t *testing.T) {
	busy.Acquire(t)
	for name, call := range waits {
		for _, n := range []int{2, 5} {
			t.Run(fmt.Sprintf("%s/%d ranks", name, n), func(t *testing.T) {
				err := run(t, n, func(s *script) {
					s.OK(s.World.Barrier(s.Ctx))
					if s.me == 1 {
						s.OK(errBody)
					}
					err := repeat(s, call)
					s.Lost(err, 1)
					s.Fails(err, errBody)
					for _, later := range waits {
						s.Lost(later(s, s.Ctx), 1)
					}
					s.OK(s.World.Close())
				})
				require.EqualError(t, err, "world: rank 1: body failed")
			})
		}
	}
}
