package formtest

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/world"
)

func TestMain(m *testing.M) { jobtest.Main(m) }

// Of any 2 consecutive jobs one has mapped memory and the other has not. Any 5 have all forms, any 3 have all numbers
// of ranks, and any 15 have all combinations.
func TestChosen(t *testing.T) {
	ranks := [3]int{4, 6, 7}
	maps := map[string]bool{"goroutines": true, "processes": true, hosts: true}
	remote := map[string]bool{"tcp": true, "apart": true, hosts: true}
	for _, body := range []string{"one", "another", ""} {
		for first := range uint64(20) {
			one, _ := chosen(body, first, ranks)
			next, _ := chosen(body, first+1, ranks)
			names, numbers, both := map[string]bool{}, map[int]bool{}, map[string]bool{}
			for seed := first; seed < first+15; seed++ {
				f, n := chosen(body, seed, ranks)
				if seed < first+5 {
					names[f.Name] = true
				}
				if seed < first+3 {
					numbers[n] = true
				}
				both[fmt.Sprint(f.Name, n)] = true
			}
			if testsize.Race {
				require.Equal(t, map[string]bool{"goroutines": true, "apart": true, hosts: true}, names)
				require.Len(t, both, 2*len(ranks)+1)
				continue
			}
			require.True(t, (maps[one.Name] || maps[next.Name]) && (remote[one.Name] || remote[next.Name]), "%s and %s", one.Name, next.Name)
			require.Len(t, names, 5)
			require.Len(t, numbers, 3)
			require.Len(t, both, 15)
		}
	}
}

// Two hosts of which one has two ranks need three.
func TestChosenHosts(t *testing.T) {
	for seed := range uint64(15) {
		if f, n := chosen("", seed, [3]int{1, 2, 3}); f.Name == hosts {
			require.Equal(t, leastHosts, n)
		}
	}
}

// seeded is nil unless the ranks of a job have different seeds, or one that is not of a job.
var seeded = jobtest.Register("seeded", func(ctx context.Context, w *world.World) error {
	all := make([]uint64, w.Size())
	if err := world.AllGather(ctx, w, []uint64{Seed()}, all); err != nil {
		return err
	}
	for rank, seed := range all {
		if seed != all[0] || seed < testsize.Seed() || seed >= testsize.Seed()+uint64(jobs()) {
			return fmt.Errorf("rank %d has seed %d, rank 0 has %d", rank, seed, all[0])
		}
	}
	return nil
})

func TestRun(t *testing.T) {
	Run(t, [3]int{1, 2, 3}, seeded)
	require.Equal(t, testsize.Seed(), Seed(), "outside of a job")
}
