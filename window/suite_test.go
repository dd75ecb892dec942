package window_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/internal/testsize"
)

// A suite is registered bodies that are tried as by jobtest.InTurns, except that bodies which are due over the same
// processes share a job, and run in it one after the other: starting a job costs more than most bodies. The seed decides which
// of them is first, and finds no connections.
type suite struct {
	name   string
	sizes  []int
	bodies []string
}

// newSuite registers the jobs of a suite. It is called when packages are initialized, like register.
func newSuite(name string, sizes []int, bodies ...string) *suite {
	u := &suite{name, sizes, bodies}
	for i, f := range u.forms() {
		if f.processes {
			jobtest.Register(u.job(f.Name), scripted(func(s *script) {
				for _, body := range u.due(i, s.World.Size()) {
					if err := jobtest.Checked(func() { scripts[body](s) }); err != nil {
						s.OK(fmt.Errorf("%s: %w", body, err))
					}
				}
			}))
		}
	}
	return u
}

// job is the name of the body that runs those of the suite whose turn it is.
func (u *suite) job(form string) string { return u.name + " in turns, " + form }

// A suiteForm is a form, with those sizes of a suite that it is for.
type suiteForm struct {
	jobtest.Form
	processes bool
	sizes     []int
}

// forms returns the forms in the order of jobtest.InTurns.
func (u *suite) forms() []suiteForm {
	var forms []suiteForm
	for _, n := range u.sizes {
		processes := jobtest.ProcessForms(n)
		for _, f := range jobtest.Forms(n) {
			named := func(other jobtest.Form) bool { return other.Name == f.Name }
			i := slices.IndexFunc(forms, func(known suiteForm) bool { return named(known.Form) })
			if i < 0 {
				i = len(forms)
				forms = append(forms, suiteForm{Form: f, processes: slices.ContainsFunc(processes, named)})
			}
			forms[i].sizes = append(forms[i].sizes, n)
		}
	}
	return forms
}

// due returns the bodies whose turn it is over n ranks in the i-th form, from another one on for each seed.
func (u *suite) due(i, n int) []string {
	sizes := u.forms()[i].sizes
	var due []string
	for turn, body := range u.bodies {
		for _, k := range testsize.Turns(turn+i, len(sizes), 1) {
			if sizes[k] == n {
				due = append(due, body)
			}
		}
	}
	if len(due) == 0 {
		return nil
	}
	first := int(testsize.Seed() % uint64(len(due)))
	return append(due[first:], due[:first]...)
}

// run runs the bodies of a suite in turns, as subtests.
func (u *suite) run(t *testing.T) {
	for i, f := range u.forms() {
		for _, n := range f.sizes {
			due := u.due(i, n)
			if !f.processes {
				for _, body := range due {
					t.Run(fmt.Sprintf("%s/%d/%s", f.Name, n, body), func(t *testing.T) { f.Run(t, n, body) })
				}
			} else if len(due) > 0 {
				t.Run(fmt.Sprintf("%s/%d", f.Name, n), func(t *testing.T) {
					t.Logf("one after the other: %q", due)
					f.Run(t, n, u.job(f.Name))
				})
			}
		}
	}
}
