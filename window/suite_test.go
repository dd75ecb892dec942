package window_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/internal/testsize"
)

// A member is a body that is tried as by jobtest.InTurns, except that bodies which are due over the same processes share a
// job, and run in it one after the other: starting a job costs more than most bodies. TestProcesses runs those jobs, and the
// body's own test runs it as goroutines, by runShared.
type member struct {
	body  string
	sizes []int
	// forms are the names of those that the body is for, all of them if there is none.
	forms []string
}

// members are the bodies that registerShared has made known, in the order in which the variables of the package are made.
var members []member

// registerShared registers a member, with the numbers of ranks it is for. Numbers above smallJob are left to runs larger than
// a plain one.
func registerShared(name string, sizes []int, body func(s *script), forms ...string) string {
	members = append(members, member{name, sizes, forms})
	return register(name, body)
}

const (
	// smallJob is how many ranks members have in a plain run: three are of two hosts, and rounds among them are two.
	smallJob = 3
	// jobBodies bounds how many bodies share a job, whose time is limited.
	jobBodies = 24
	// mostParts bounds the jobs of a form and a number of ranks.
	mostParts = 4
)

// formNames are all forms of members, in the order of jobtest.Forms.
var formNames = []string{"goroutines", "apart", "processes", "tcp", "hosts"}

// of returns the numbers of ranks that are due for a member in a form, of which turn is its number.
func (m *member) of(turn int, form string) []int {
	if len(m.forms) > 0 && !slices.Contains(m.forms, form) {
		return nil
	}
	var sizes, due []int
	for _, n := range m.sizes {
		there := slices.ContainsFunc(jobtest.Forms(n), func(f jobtest.Form) bool { return f.Name == form })
		if there && (n <= smallJob || testsize.Size() > 1) {
			sizes = append(sizes, n)
		}
	}
	if len(sizes) == 0 {
		return nil
	}
	for _, k := range testsize.Turns(turn+slices.Index(formNames, form), len(sizes), 1) {
		due = append(due, sizes[k])
	}
	return due
}

// due returns the members whose turn it is over n ranks in a form, from another one on for each seed: the first finds no
// connections.
func due(form string, n int) []string {
	var due []string
	for turn, m := range members {
		if slices.Contains(m.of(turn, form), n) {
			due = append(due, m.body)
		}
	}
	if len(due) == 0 {
		return nil
	}
	first := int(testsize.Seed() % uint64(len(due)))
	return append(due[first:], due[:first]...)
}

// jobName is the name of the body that runs a part of those that are due in a form.
func jobName(form string, part int) string { return fmt.Sprintf("members on %s, part %d", form, part) }

func init() {
	for _, form := range formNames {
		for part := range mostParts {
			jobtest.Register(jobName(form, part), scripted(func(s *script) {
				s.inTurn(parts(due(form, s.World.Size()))[part])
			}))
		}
	}
}

// parts divides bodies among jobs.
func parts(bodies []string) [][]string { return slices.Collect(slices.Chunk(bodies, jobBodies)) }

// TestProcesses runs the members whose turn it is over processes. A failure names the body.
func TestProcesses(t *testing.T) {
	busy.Acquire(t)
	most := 0
	for _, m := range members {
		most = max(most, slices.Max(m.sizes))
	}
	for n := 1; n <= most; n++ {
		for _, f := range jobtest.ProcessForms(n) {
			for part, bodies := range parts(due(f.Name, n)) {
				t.Run(fmt.Sprintf("%s/%d/%d", f.Name, n, part), func(t *testing.T) {
					t.Logf("one after the other: %q", bodies)
					f.Run(t, n, jobName(f.Name, part))
				})
			}
		}
	}
}

// runShared runs members as goroutines, in turns, as subtests.
func runShared(t *testing.T, bodies ...string) {
	for turn, m := range members {
		if !slices.Contains(bodies, m.body) {
			continue
		}
		for _, form := range []string{"goroutines", "apart"} {
			for _, n := range m.of(turn, form) {
				t.Run(fmt.Sprintf("%s/%d/%s", m.body, n, form), func(t *testing.T) {
					if form == "apart" {
						jobtest.Apart(t, n, m.body)
					} else {
						jobtest.Goroutines(t, n, m.body)
					}
				})
			}
		}
	}
}
