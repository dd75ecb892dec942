package jobtest

import (
	"fmt"
	"testing"

	"github.com/onesided/rma/internal/testsize"
)

// A Form is where the body of a test may run.
type Form struct {
	Name string
	// Run runs a registered body over n ranks.
	Run func(t *testing.T, n int, name string)
}

// Forms are those of Run for n ranks: Goroutines, Apart, and those of ProcessForms.
func Forms(n int) []Form {
	return append([]Form{{"goroutines", Goroutines}, {"apart", Apart}}, ProcessForms(n)...)
}

// ProcessForms are those of Run for n ranks that are processes: Processes, TCP, and, with three ranks or more, Hosts. The
// race detector sees nothing of what goes on between processes: with it the only ones are three on two hosts, which share
// memory and use TCP.
func ProcessForms(n int) []Form {
	var forms []Form
	if !testsize.Race {
		forms = []Form{{"processes", Processes}, {"tcp", TCP}}
	}
	if n == 3 || n > 3 && !testsize.Race {
		forms = append(forms, Form{"hosts", Hosts})
	}
	return forms
}

// Run runs the body as subtests in each of Forms.
func Run(t *testing.T, n int, name string) {
	t.Helper()
	for _, f := range Forms(n) {
		t.Run(f.Name, func(t *testing.T) { f.Run(t, n, name) })
	}
}

// InTurns runs the body as subtests in each of Forms. Of the numbers of ranks a plain run takes one for each form, and a
// larger one more. Which one is the turn of the body, which the caller counts, of the form and of the seed.
func InTurns(t *testing.T, turn int, name string, sizes ...int) {
	t.Helper()
	served, order := make(map[string][]int), []Form(nil)
	for _, n := range sizes {
		for _, f := range Forms(n) {
			if served[f.Name] == nil {
				order = append(order, f)
			}
			served[f.Name] = append(served[f.Name], n)
		}
	}
	for i, f := range order {
		of := served[f.Name]
		for _, k := range testsize.Turns(turn+i, len(of), 1) {
			t.Run(fmt.Sprintf("%s/%d/%s", name, of[k], f.Name), func(t *testing.T) { f.Run(t, of[k], name) })
		}
	}
}
