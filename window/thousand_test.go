package window_test

import (
	"fmt"
	"testing"

	"github.com/onesided/rma/internal/jobtest"
)

// TestThousand runs bodies of the other tests among a thousand goroutines; those in which
// every rank has to do with all others several times among fewer.
func TestThousand(t *testing.T) {
	for _, body := range []struct {
		name  string
		ranks int
	}{
		{fencePuts, many}, {exclusiveCounter, many}, {tickets, many}, {getAccumulate, many}, {layouts, many},
		{notifications, many / 4}, {views, many / 2}, {empty, many},
	} {
		t.Run(fmt.Sprintf("%s/%d", body.name, body.ranks), func(t *testing.T) { jobtest.Goroutines(t, body.ranks, body.name) })
	}
}
