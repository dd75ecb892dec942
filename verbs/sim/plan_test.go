package sim_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/simtest"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/verbs/sim"
)

// A plan is of its seed, ranks and horizon, keeps to them, and leaves somebody.
func TestPlan(t *testing.T) {
	for seed := range testsize.Samples(t, 500) {
		ranks := 1 + int(seed%9)
		plan := sim.Plan(seed, ranks, 5*ms)
		require.Equal(t, plan, sim.Plan(seed, ranks, 5*ms), "seed %d", seed)
		require.LessOrEqual(t, len(plan), 6)
		ended := map[int]bool{}
		for _, f := range plan {
			require.GreaterOrEqual(t, f.At, time.Duration(0))
			require.Less(t, f.At, 5*ms)
			for _, rank := range append(slices.Clone(f.Ranks), f.Rank, f.Peer) {
				require.Less(t, rank, ranks)
			}
			if f.Kind == sim.Kill {
				f.Ranks = []int{f.Rank}
			}
			for _, rank := range f.Ranks {
				require.False(t, ended[rank], "rank %d ends twice:\n%s", rank, plan)
				ended[rank] = true
			}
		}
		require.Less(t, len(ended), ranks)
		again, err := sim.ParseFaults(plan.String())
		require.NoError(t, err)
		require.Equal(t, plan, again)
		s := simtest.With(t, sim.Ideal(), 1)
		require.NoError(t, s.Inject(plan...))
	}
	require.NotEqual(t, sim.Plan(1, 4, ms), sim.Plan(2, 4, ms))
	sim.Plan(1, 0, -1)
}

func TestParseFaults(t *testing.T) {
	plan, err := sim.ParseFaults(`
		# what failed
		at 1.5ms kill rank 3
		at event 1200 stall rank 0 in for 20ms # until here all went well
		at 2ms   power-loss rank 0,2,4
		at 0s fail-pair rank 1 peer 2
		at 1h delay rank 1 out by 3us
		at 7ns slow rank 2 by 1000 for 1s
		at 1ms reject-memory rank 2
		at 1ms overflow rank 2
		at 1ms starve rank 2 times 3
		at 1ms exhaust rank 2
	`)
	require.NoError(t, err)
	require.Equal(t, strings.TrimPrefix(`
at 1.5ms kill rank 3
at event 1200 stall rank 0 in for 20ms
at 2ms power-loss rank 0,2,4
at 0s fail-pair rank 1 peer 2
at 1h0m0s delay rank 1 out by 3µs
at 7ns slow rank 2 by 1000 for 1s
at 1ms reject-memory rank 2
at 1ms overflow rank 2
at 1ms starve rank 2 times 3
at 1ms exhaust rank 2
`, "\n"), plan.String())

	for text, problem := range map[string]string{
		"kill rank 3":                    `line 1, "kill rank 3": "kill" where "at" is expected`,
		"\nat":                           `line 2, "at": the line ends too early`,
		"at noon kill rank 3":            "noon",
		"at 1ms melt rank 3":             `no fault "melt"; allowed are kill, power-loss, fail-pair`,
		"at 1ms kill peer 3":             `"peer" where "rank" is expected`,
		"at 1ms kill rank x":             `"x" where a number is expected`,
		"at 1ms kill rank 1 for 1ms":     `kill has no "for"`,
		"at 1ms delay rank 1 in":         "delay: by 0s",
		"at 1ms stall rank 1 by 3us":     `stall has no "by"; after the rank, allowed are in or out, and for`,
		"at 1ms power-loss rank 1,,2":    `"" where a number is expected`,
		"at event 0 kill rank 1":         `event "0"; they count from 1`,
		"at event -1 kill rank 1":        `event "-1"; they count from 1`,
		"at 1ms slow rank 1 by":          "the line ends too early",
		"at 1ms starve rank 1 times 0":   "times 0; allowed is 1",
		"at 1ms reject-memory rank -4":   "rank -4; they count from 0",
		"at 1ms kill rank 1 rank 2":      `kill has no "rank"`,
		"at 1ms fail-pair rank 1 peer -": `"-" where a number is expected`,
	} {
		_, err := sim.ParseFaults(text)
		require.ErrorContains(t, err, problem)
		require.ErrorContains(t, err, "sim: faults: line ")
	}
}

// Whatever is read is written so that it is read again as the same.
func FuzzParseFaults(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(sim.Plan(seed, 5, ms).String())
	}
	f.Add("at event 7 power-loss rank 1,2,3\n\n# \n")
	f.Fuzz(func(t *testing.T, text string) {
		plan, err := sim.ParseFaults(text)
		if err != nil {
			return
		}
		again, err := sim.ParseFaults(plan.String())
		require.NoError(t, err)
		require.Equal(t, plan.String(), again.String())
	})
}
