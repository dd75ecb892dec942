package jobtest

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/world"
)

// A Body is the function that each rank of a test runs. An error fails the test.
type Body func(ctx context.Context, w *world.World) error

// A part is a body and the options with which its ranks join.
type part struct {
	body Body
	// options is nil for the defaults.
	options func() ([]world.Option, error)
}

var parts = map[string]part{}

// Register registers body under name and returns the name. It must be called while packages are initialized, so that
// processes started from the same test binary know the name, too. A name that is taken ends the program.
func Register(name string, body Body) string { return RegisterWith(name, nil, body) }

// RegisterWith is like Register, for a body whose ranks join with options if they are processes. options must take
// values that differ between ranks from the environment.
func RegisterWith(name string, options func() ([]world.Option, error), body Body) string {
	if _, taken := parts[name]; taken {
		fmt.Fprintf(os.Stderr, "jobtest: two bodies are registered as %q\n", name)
		os.Exit(2)
	}
	parts[name] = part{body, options}
	return name
}

// Everywhere runs the body as subtests in every form: those of Run, Cards with coherent atomics and without,
// Simulated, and, without the race detector, Namespaces. The body must be fit for Simulated.
func Everywhere(t *testing.T, n int, name string) {
	t.Helper()
	Run(t, n, name)
	t.Run("cards", func(t *testing.T) { Cards(t, n, name, false) })
	t.Run("coherent cards", func(t *testing.T) { Cards(t, n, name, true) })
	t.Run("simulated", func(t *testing.T) { Simulated(t, n, name) })
	if !testsize.Race {
		t.Run("namespaces", func(t *testing.T) { Namespaces(t, n, name) })
	}
}

// TCP runs the body on n processes that share no memory.
func TCP(t *testing.T, n int, name string) {
	t.Helper()
	StartWith(t, n, name, func(int) []string { return []string{"RMA_DEVICE=tcp"} }).Succeeds()
}

// Hosts runs the body on n processes that act as if they were, in turn, on two hosts. Those of one host share memory,
// and reach those of the other over TCP.
func Hosts(t *testing.T, n int, name string) {
	t.Helper()
	StartWith(t, n, name, func(rank int) []string {
		return []string{"RMA_DEVICE=", fmt.Sprintf("RMA_HOST=host%d", rank%2)}
	}).Succeeds()
}

// Apart runs the body on n ranks that are goroutines but map no memory of each other: everything goes by messages,
// writes and reads.
func Apart(t *testing.T, n int, name string) {
	t.Helper()
	goroutines(t, n, name, OptionsApart()...)
}

// Goroutines runs the body on n ranks that are goroutines.
func Goroutines(t *testing.T, n int, name string) {
	t.Helper()
	goroutines(t, n, name)
}

// Cards runs the body on n ranks that are goroutines and have cards with atomics. coherent says whether the cards are
// coherent with processors.
func Cards(t *testing.T, n int, name string, coherent bool) {
	t.Helper()
	goroutines(t, n, name, OptionsCards(coherent)...)
}

func goroutines(t *testing.T, n int, name string, options ...world.Option) {
	t.Helper()
	if err := world.Run(t.Context(), n, find(t, name), options...); err != nil {
		t.Error(err)
	}
}

// Processes runs the body on n ranks that are processes.
func Processes(t *testing.T, n int, name string) {
	t.Helper()
	Start(t, n, name).Succeeds()
}

func find(t *testing.T, name string) Body {
	t.Helper()
	p, ok := parts[name]
	if !ok {
		t.Fatalf("jobtest: no body is registered as %q", name)
	}
	return p.body
}
