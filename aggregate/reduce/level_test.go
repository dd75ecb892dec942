package reduce_test

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/onesided/rma/aggregate/reduce"
)

func TestUseTakesTheLevelsOfTheProcessor(t *testing.T) {
	levels := reduce.Levels()
	if levels[0] != reduce.Plain || !slices.IsSorted(levels) {
		t.Errorf("levels are %v, not Plain and upwards", levels)
	}
	use(t, reduce.Plain)
	now := reduce.Plain
	for level := reduce.Level(0); level < 10; level++ {
		previous, err := reduce.Use(level)
		if previous != now {
			t.Errorf("before %v the level was %v, not %v", level, previous, now)
		}
		if slices.Contains(levels, level) {
			if err != nil {
				t.Error(err)
			}
			now = level
		} else if !errors.Is(err, reduce.ErrLevel) || !says(err, level.String(), "Plain") {
			t.Errorf("%v is refused with %v", level, err)
		}
	}
}

func TestLevelNames(t *testing.T) {
	for level, name := range map[reduce.Level]string{reduce.Plain: "Plain", reduce.AVX2: "AVX2", reduce.AVX512: "AVX512", 3: "level 3"} {
		if level.String() != name {
			t.Errorf("%v is called %v", name, level)
		}
	}
}

// TestUseChangesLookups compares functions by their code.
func TestUseChangesLookups(t *testing.T) {
	code := func(level reduce.Level) uintptr {
		return reflect.ValueOf(lookup(t, level, reduce.Float64, reduce.Min)).Pointer()
	}
	for _, level := range vectors(t) {
		if code(reduce.Plain) == code(level) {
			t.Errorf("the least of floats is the same function at Plain and at %v", level)
		}
	}
	if first, second := code(reduce.Plain), code(reduce.Plain); first != second {
		t.Error("Plain does not give the same function twice")
	}
}

// TestUseDuringLookups is for the race detector; and whatever the level, a function
// is right.
func TestUseDuringLookups(t *testing.T) {
	use(t, reduce.Plain)
	levels := reduce.Levels()
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			values := pool(reduce.Int32, 256, rand.New(rand.NewPCG(4, 0)))
			zeros := make([]byte, len(values))
			for n := range 1000 {
				if _, err := reduce.Use(levels[(n+i)%len(levels)]); err != nil {
					t.Error(err)
				}
				or, err := reduce.Lookup(reduce.Int32, reduce.Or)
				if err != nil {
					t.Error(err)
					return
				}
				clear(zeros)
				apply(or, zeros, values, reduce.Int32, len(values)/4)
				if !slices.Equal(zeros, values) {
					t.Error("0 or x is not x")
				}
			}
		})
	}
	group.Wait()
}
