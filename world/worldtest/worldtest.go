package worldtest

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/onesided/rma/world"
)

// A Body is what each rank of a test does. An error fails the test.
type Body func(ctx context.Context, w *world.World) error

var bodies = map[string]Body{}

// Register makes body known under name, in this process and in those that Processes
// starts from the same test binary. It is called when packages are initialized; a
// name that is taken ends the program.
func Register(name string, body Body) {
	if _, taken := bodies[name]; taken {
		fmt.Fprintf(os.Stderr, "worldtest: two bodies are registered as %q\n", name)
		os.Exit(2)
	}
	bodies[name] = body
}

// Run runs the body over n goroutines and over n processes, as two subtests.
func Run(t *testing.T, n int, name string) {
	t.Run("goroutines", func(t *testing.T) { Goroutines(t, n, name) })
}

// Goroutines runs the body over n ranks that are goroutines.
func Goroutines(t *testing.T, n int, name string) {
	t.Helper()
	if err := world.Run(t.Context(), n, body(t, name)); err != nil {
		t.Error(err)
	}
}

func body(t *testing.T, name string) Body {
	t.Helper()
	b, ok := bodies[name]
	if !ok {
		t.Fatalf("worldtest: no body is registered as %q", name)
	}
	return b
}

// Main runs the tests, or one rank of one in a process that Processes has started.
func Main(m *testing.M) { os.Exit(m.Run()) }
