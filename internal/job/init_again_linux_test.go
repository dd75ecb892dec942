package job_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/internal/launchtest"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/world"
)

// Init beside an open World is an error, and the World goes on. After Close it joins another job of the same ranks.
var initAgain = register("init again", func(s *script) {
	w := s.World
	for range testsize.N(3) {
		_, err := world.Init(s.Ctx)
		s.Check(errors.Is(err, world.ErrInitialized), "Init beside an open World: %v", err)
		s.OK(w.Barrier(s.Ctx))
		s.OK(w.Close())
		w, err = world.Init(s.Ctx)
		s.OK(err)
		s.Check(w.Rank() == s.me && w.Size() == s.n, "rank %d of %d is rank %d of %d now", s.me, s.n, w.Rank(), w.Size())
		all := make([]int, s.n)
		s.OK(world.AllGather(s.Ctx, w, []int{s.me}, all))
	}
	s.OK(w.Close())
})

// Ranks that leave a job call the root for the next while others are still leaving the last.
var initOften = register("init often", func(s *script) {
	w := s.World
	for range testsize.N(8) {
		s.OK(w.Close())
		var err error
		w, err = world.Init(s.Ctx)
		s.OK(err)
	}
	s.OK(w.Close())
})

func TestInitAgain(t *testing.T) {
	t.Parallel()
	for _, form := range jobtest.ProcessForms(3) {
		t.Run(form.Name, func(t *testing.T) { form.Run(t, 3, initAgain) })
	}
	t.Run("root", func(t *testing.T) {
		jobtest.StartWith(t, 4, initOften, rootJob(t, launchtest.RootAddress(), 4)).Succeeds()
	})
}

func TestInitAgainAlone(t *testing.T) {
	environment(t, nil)
	w, err := world.Init(t.Context())
	require.NoError(t, err)
	_, err = world.Init(t.Context())
	require.ErrorIs(t, err, world.ErrInitialized)
	require.NoError(t, w.Barrier(t.Context()))
	require.NoError(t, w.Close())
	_, err = world.Init(t.Context(), world.WithAddress("240.0.0.1"))
	require.ErrorIs(t, err, world.ErrEnvironment)
	w, err = world.Init(t.Context())
	require.NoError(t, err)
	require.NoError(t, w.Close())
}
