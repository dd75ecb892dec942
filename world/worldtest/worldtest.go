package worldtest

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/shm"
	"github.com/onesided/rma/world"
)

// A Body is what each rank of a test does. An error fails the test.
type Body func(ctx context.Context, w *world.World) error

var bodies = map[string]Body{}

// Register makes body known under name, in this process and in those that are
// started from the same test binary, and returns the name. It is called when
// packages are initialized; a name that is taken ends the program.
func Register(name string, body Body) string {
	if _, taken := bodies[name]; taken {
		fmt.Fprintf(os.Stderr, "worldtest: two bodies are registered as %q\n", name)
		os.Exit(2)
	}
	bodies[name] = body
	return name
}

// Run runs the body over n goroutines, over n processes, and over n goroutines that
// are apart, as subtests.
func Run(t *testing.T, n int, name string) {
	t.Helper()
	t.Run("goroutines", func(t *testing.T) { Goroutines(t, n, name) })
	t.Run("processes", func(t *testing.T) { Processes(t, n, name) })
	t.Run("apart", func(t *testing.T) { Apart(t, n, name) })
}

// Apart runs the body over n ranks that are goroutines but map no memory of each
// other: everything goes by messages, writes and reads.
func Apart(t *testing.T, n int, name string) {
	t.Helper()
	fabric := shm.NewFabric()
	network := world.WithNetwork(func(int) (verbs.Device, error) {
		device, err := fabric.Open()
		// What it can do beside being a Device is hidden.
		return struct{ verbs.Device }{device}, err
	})
	if err := world.Run(t.Context(), n, find(t, name), world.WithDevice("tcp"), network); err != nil {
		t.Error(err)
	}
}

// Goroutines runs the body over n ranks that are goroutines.
func Goroutines(t *testing.T, n int, name string) {
	t.Helper()
	if err := world.Run(t.Context(), n, find(t, name)); err != nil {
		t.Error(err)
	}
}

// Processes runs the body over n ranks that are processes.
func Processes(t *testing.T, n int, name string) {
	t.Helper()
	for rank, err := range Start(t, n, name).Wait() {
		if err != nil {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}

func find(t *testing.T, name string) Body {
	t.Helper()
	body, ok := bodies[name]
	if !ok {
		t.Fatalf("worldtest: no body is registered as %q", name)
	}
	return body
}
