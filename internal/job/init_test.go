package job_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/world"
)

var managerVariables = []string{"PMI_FD", "PMI_RANK", "PMI_SIZE", "PMI_PORT", "PMI_ID"}

// environment sets the variables of a manager and unsets the others.
func environment(t *testing.T, set map[string]string) {
	for _, name := range managerVariables {
		t.Setenv(name, set[name])
		if _, ok := set[name]; !ok {
			require.NoError(t, os.Unsetenv(name))
		}
	}
}

func TestInitAlone(t *testing.T) {
	environment(t, nil)
	w, err := world.Init(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, w.Size())
	require.NoError(t, scripted(func(s *script) { program(s, 100, 5000, 1) })(t.Context(), w))
	require.NoError(t, w.Close())
	require.NoError(t, w.Close())
}

// What is wrong with the environment is said with the variable, its value, and what
// is allowed.
func TestInitEnvironment(t *testing.T) {
	for _, c := range []struct {
		set   map[string]string
		named []string
	}{
		{map[string]string{"PMI_RANK": "3"}, []string{`PMI_RANK="3"`, "PMI_FD"}},
		{map[string]string{"PMI_SIZE": "4"}, []string{`PMI_SIZE="4"`, "PMI_FD"}},
		{map[string]string{"PMI_ID": "0"}, []string{`PMI_ID="0"`, "PMI_PORT"}},
		{map[string]string{"PMI_FD": "x", "PMI_RANK": "0", "PMI_SIZE": "1"}, []string{`PMI_FD="x"`, "number"}},
		{map[string]string{"PMI_FD": "-1", "PMI_RANK": "0", "PMI_SIZE": "1"}, []string{`PMI_FD="-1"`, "at least 0"}},
		{map[string]string{"PMI_FD": "3", "PMI_RANK": "0"}, []string{`PMI_SIZE=""`, "at least 1"}},
		{map[string]string{"PMI_FD": "3", "PMI_SIZE": "2"}, []string{`PMI_RANK=""`, "at least 0"}},
		{map[string]string{"PMI_FD": "3", "PMI_RANK": "1e3", "PMI_SIZE": "2"}, []string{`PMI_RANK="1e3"`}},
		{map[string]string{"PMI_FD": "3", "PMI_RANK": "0", "PMI_SIZE": "0"}, []string{`PMI_SIZE="0"`, "at least 1"}},
		{map[string]string{"PMI_FD": "3", "PMI_RANK": "2", "PMI_SIZE": "2"}, []string{"PMI_RANK=2", "0 to 1"}},
		{map[string]string{"PMI_FD": "1000000", "PMI_RANK": "0", "PMI_SIZE": "1"}, []string{"PMI_FD=1000000", "bad file descriptor"}},
		{map[string]string{"PMI_PORT": "127.0.0.1:1"}, []string{`PMI_ID=""`, "number"}},
		{map[string]string{"PMI_PORT": "nowhere", "PMI_ID": "0"}, []string{"PMI_PORT=nowhere"}},
	} {
		environment(t, c.set)
		w, err := world.Init(t.Context())
		require.ErrorIs(t, err, world.ErrEnvironment, "%v", c.set)
		require.Nil(t, w)
		for _, text := range append(c.named, "world: Init: ") {
			require.ErrorContains(t, err, text)
		}
	}
}

// The variables of Main are errors of Init, which would ignore them.
func TestInitMakesNoRanks(t *testing.T) {
	environment(t, nil)
	for name, value := range map[string]string{"RMA_RANKS": "4", "RMA_SIMULATE": "ndr-2024"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, value)
			w, err := world.Init(t.Context())
			require.Nil(t, w)
			require.ErrorIs(t, err, world.ErrEnvironment)
			require.ErrorContains(t, err, `world: Init: invalid environment: `+name+`="`+value+`" is for programs that call world.Main; `)
		})
	}
	w, err := world.Init(t.Context())
	require.NoError(t, err)
	require.NoError(t, w.Close())
}

var meet = register("meet", func(s *script) {
	s.OK(s.World.Barrier(s.Ctx))
	all := make([]int, s.n)
	s.OK(world.AllGather(s.Ctx, s.World, []int{s.me}, all))
	for rank, got := range all {
		s.Check(got == rank, "rank %d's element is %d", rank, got)
	}
	s.OK(s.World.Close())
})

// Many more processes than cores meet: 64 in a large size.
func TestManyProcesses(t *testing.T) {
	busy.Acquire(t)
	start := time.Now()
	n := min(testsize.N(16), 64)
	jobtest.Processes(t, n, meet)
	t.Logf("%d processes started, met and closed in %v", n, time.Since(start))
}
