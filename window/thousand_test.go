package window_test

import (
	"fmt"
	"testing"

	"github.com/onesided/rma/world/worldtest"
)

// TestThousand runs bodies of the other tests among a thousand goroutines.
func TestThousand(t *testing.T) {
	for _, name := range []string{fencePuts, exclusiveCounter, tickets, getAccumulate, layouts, notifications, views, empty} {
		t.Run(fmt.Sprintf("%s/%d", name, many), func(t *testing.T) { worldtest.Goroutines(t, many, name) })
	}
}
