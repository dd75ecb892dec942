package window_test

import (
	"fmt"
	"testing"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/internal/testsize"
)

// many is a number of ranks far above that of cores.
var many = testsize.Either(1000, 100)

// TestThousand runs bodies of the other tests among very many goroutines: up to a thousand, where the tests are to try
// more than in a plain run.
func TestThousand(t *testing.T) {
	busy.Acquire(t)
	for _, body := range []struct {
		name string
		// plain is how many ranks there are in a plain run, most at most.
		plain, most int
	}{
		{layouts, 270, many}, {fencePuts, 50, many}, {exclusiveCounter, 50, many}, {tickets, 50, many}, {getAccumulate, 70, many},
		{notifications, 50, many / 4}, {views, 50, many / 2}, {empty, 70, many},
	} {
		n := min(body.most, testsize.N(body.plain))
		t.Run(fmt.Sprintf("%s/%d", body.name, n), func(t *testing.T) { jobtest.Goroutines(t, n, body.name) })
	}
}
