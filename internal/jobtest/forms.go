package jobtest

import (
	"fmt"
	"testing"

	"github.com/onesided/rma/internal/testsize"
)

// A Form is a way to run the body of a test.
type Form struct {
	Name string
	// Run runs a registered body on n ranks.
	Run func(t *testing.T, n int, name string)
}

// Forms returns the forms of Run for n ranks: Goroutines, Apart, and those of ProcessForms.
func Forms(n int) []Form {
	return append([]Form{{"goroutines", Goroutines}, {"apart", Apart}}, ProcessForms(n)...)
}

// ProcessForms returns the forms of Run for n ranks that are processes: Processes, TCP, and, with three ranks or
// more, Hosts. The race detector does not see accesses between processes. So with it the only form is three ranks on
// two hosts, which use shared memory and TCP.
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

// InTurns runs the body as subtests in each of Forms. A plain run takes one of the numbers of ranks for each form,
// and a larger run more. The choice depends on turn, which the caller counts, on the form and on the seed.
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
