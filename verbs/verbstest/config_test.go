package verbstest

import (
	"slices"
	"testing"

	"github.com/onesided/rma/internal/testsize"
)

// A variant runs the groups that it names whole, and the other cases in turn: each seed another fifth.
func TestVariantTakesTurns(t *testing.T) {
	if testsize.N(1) > 1 {
		t.Skip("skipped: at this size a variant runs more")
	}
	all := suite(0, plainPrograms)
	config := Config{Variant: []string{"Connections", "Transfer"}}
	seen := map[string]int{}
	for seed := range uint64(variantShare) {
		cases := 0
		for i, g := range config.chosen(all, "TestCard", seed) {
			for _, c := range g.cases {
				seen[g.name+"/"+c.name]++
			}
			if slices.Contains(config.Variant, g.name) && len(g.cases) != len(all[i].cases) {
				t.Errorf("group %s has %d cases of %d", g.name, len(g.cases), len(all[i].cases))
			}
			cases += len(g.cases)
		}
		if cases > 100 {
			t.Errorf("seed %d runs %d cases", seed, cases)
		}
	}
	for _, g := range all {
		want := 1
		if slices.Contains(config.Variant, g.name) {
			want = variantShare
		}
		for _, c := range g.cases {
			if n := seen[g.name+"/"+c.name]; n != want {
				t.Errorf("%s/%s runs %d times in %d seeds, want %d", g.name, c.name, n, variantShare, want)
			}
		}
	}
}

// A run that is no variant has all cases, and every other one below the plain size: another half with the next seed.
func TestWholeSuite(t *testing.T) {
	all := suite(0, plainPrograms)
	for size, want := range map[string]int{"1": 2, "20": 2, "0.2": 1} {
		t.Setenv("RMA_TEST_SIZE", size)
		seen := map[string]int{}
		for seed := range uint64(2) {
			for _, g := range (&Config{}).chosen(all, "TestCard", seed) {
				for _, c := range g.cases {
					seen[g.name+"/"+c.name]++
				}
			}
		}
		for _, g := range all {
			for _, c := range g.cases {
				if n := seen[g.name+"/"+c.name]; n != want {
					t.Errorf("%s/%s runs %d times in 2 seeds at size %s, want %d", g.name, c.name, n, size, want)
				}
			}
		}
	}
}

func TestVariantOfNoGroup(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a group that does not exist was taken")
		}
	}()
	(&Config{Variant: []string{"Nothing"}}).chosen(suite(0, 1), "TestCard", 0)
}
