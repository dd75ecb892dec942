package window_test

import (
	"fmt"
	"testing"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/internal/testsize"
)

// TestThousand runs bodies of the other tests among very many goroutines. In a plain run a thousand have to do with few
// others each, and fewer have to do with all others.
func TestThousand(t *testing.T) {
	for _, body := range []struct {
		name string
		// plain is how many ranks there are in a plain run, most at most.
		plain, most int
	}{
		{layouts, many, many}, {fencePuts, 80, many}, {exclusiveCounter, 150, many}, {tickets, 120, many}, {getAccumulate, 250, many},
		{notifications, 60, many / 4}, {views, 120, many / 2}, {empty, 250, many},
	} {
		n := min(body.most, testsize.N(body.plain))
		t.Run(fmt.Sprintf("%s/%d", body.name, n), func(t *testing.T) { jobtest.Goroutines(t, n, body.name) })
	}
}
