// Package formtest runs the body of a test in jobs of every form of package jobtest and of several sizes, in turns:
//
//	var sums = jobtest.Register("sums", func(ctx context.Context, w *world.World) error {
//		random := rand.New(rand.NewPCG(formtest.Seed(), uint64(w.Rank())))
//		...
//	})
//
//	func TestSums(t *testing.T) { formtest.Run(t, [3]int{1, 2, 5}, sums) }
//
// A plain run has two jobs for each body: in one the ranks map each other's memory, and in the other they do not. The
// forms and numbers of ranks depend on the body and on the seed, so that the bodies of a package cover all of them.
// With an RMA_TEST_SIZE of 3 or more each body has all combinations.
//
// # Invariants
//
// The number of a job is its seed. Job s has form s modulo 5 and number of ranks s modulo 3. Both are counted from an
// offset that depends on the name of the body. So 2 consecutive jobs have mapped memory and memory that is not mapped.
// 5 jobs have all forms, 3 have all numbers, and 15 have all combinations. A job that fails prints the seed with which
// it is the first one.
package formtest

import (
	"fmt"
	"hash/fnv"
	"os"
	"strconv"
	"testing"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/internal/testsize"
)

// seedVariable passes the seed of a job on to its processes.
const seedVariable = "RMA_FORMTEST_SEED"

// leastHosts is the smallest number of ranks on two hosts of which some share memory.
const leastHosts = 3

// plainJobs is the number of jobs for each body in a plain run.
const plainJobs = 2

// jobs returns the number of jobs of a body: plainJobs in a plain run, and testsize.N(5) in a larger one.
func jobs() int {
	if testsize.Size() > 1 {
		return testsize.N(len(forms))
	}
	return testsize.N(plainJobs)
}

// Run runs each body in several jobs, as subtests. Jobs on two hosts have at least 3 ranks. The race detector does
// not see accesses between processes: with it the only processes are three on two hosts.
func Run(t *testing.T, ranks [3]int, bodies ...string) {
	t.Helper()
	for _, body := range bodies {
		t.Run(body, func(t *testing.T) {
			Each(t, ranks, body, func(_ *testing.T, run func()) { run() })
		})
	}
}

// Each is like Run for one body, for a test that does something before and after each job. run runs the job.
func Each(t *testing.T, ranks [3]int, body string, test func(t *testing.T, run func())) {
	t.Helper()
	for seed := testsize.Seed(); seed < testsize.Seed()+uint64(jobs()); seed++ {
		f, n := chosen(body, seed, ranks)
		t.Run(fmt.Sprintf("%s of %d, seed %d", f.Name, n, seed), func(t *testing.T) {
			t.Setenv(seedVariable, fmt.Sprint(seed))
			defer func() {
				if t.Failed() {
					t.Logf("to repeat: %s", testsize.Replay(t.Name(), seed, testsize.Size()))
				}
			}()
			test(t, func() { f.Run(t, n, body) })
		})
	}
}

// chosen returns the form and the number of ranks of a job.
func chosen(body string, seed uint64, ranks [3]int) (jobtest.Form, int) {
	offset := fnv.New32a()
	// Write of a hash returns no error.
	_, _ = offset.Write([]byte(body))
	turn := seed%uint64(len(forms)*len(ranks)) + uint64(offset.Sum32())
	f, n := forms[turn%uint64(len(forms))], ranks[turn%uint64(len(ranks))]
	switch {
	case f.Name == hosts && testsize.Race:
		n = leastHosts
	case f.Name == hosts:
		n = max(n, leastHosts)
	}
	return f, n
}

// Seed returns the seed of the job in which this rank is. Outside of Run it is that of package testsize.
func Seed() uint64 {
	text := os.Getenv(seedVariable)
	if text == "" {
		return testsize.Seed()
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		fmt.Fprintf(os.Stderr, "formtest: %s=%q: must be a whole number from 0\n", seedVariable, text)
		os.Exit(2)
	}
	return seed
}
