package job_test

import (
	"context"
	"errors"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/world"
)

var (
	// manyRanks is a number of ranks far above that of cores.
	manyRanks = testsize.Either(1000, 100)
	// partOfThem is the part of a program's steps that is tried.
	partOfThem = testsize.Either(1, 4)
)

// busy is for tests that compute, and may do so beside those that wait: they share nothing with other tests.
var busy = jobtest.NewLimit(2)

func TestMain(m *testing.M) {
	// A process under the race detector waits a second before it ends, and there
	// are hundreds.
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	jobtest.SideBySide(256)
	jobtest.Main(m)
}

// A script is a body's checks, with what only tests of a World check.
type script struct {
	jobtest.Script
	n, me int
	// hasty has every call made with contexts that end soon, until one lasts.
	hasty bool
	// failed is closed when a rank of runSoon fails.
	failed chan struct{}
}

func scriptOf(ctx context.Context, w *world.World) *script {
	return &script{Script: jobtest.Script{Ctx: ctx, World: w}, n: w.Size(), me: w.Rank()}
}

// ended is a context that has ended.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// call makes a call, which must do well.
func (s *script) call(f func(ctx context.Context) error) {
	for turn := 0; s.hasty; turn++ {
		ctx, cancel := ended, context.CancelFunc(func() {})
		if turn%2 == 1 {
			ctx, cancel = context.WithTimeout(s.Ctx, 50*time.Microsecond) // expires
		}
		err := f(ctx)
		cancel()
		if err == nil {
			return
		}
		if s.OK(s.Ctx.Err()); !errors.Is(err, ctx.Err()) {
			s.OK(err)
		}
	}
	s.OK(f(s.Ctx))
}

func scripted(body func(s *script)) jobtest.Body {
	return jobtest.Scripted(func(s *jobtest.Script) { body(scriptOf(s.Ctx, s.World)) })
}

// register makes a body known to every process of the tests, under a name.
func register(name string, body func(s *script)) string {
	return jobtest.Register(name, scripted(body))
}

// run runs a body over goroutines.
func run(t *testing.T, n int, body func(s *script)) error {
	t.Helper()
	return world.Run(t.Context(), n, scripted(body))
}

// forms are goroutines that share memory, those that do not, and oneForm.
func forms(i, n int) []jobtest.Form { return append(jobtest.Forms(n)[:2:2], oneForm(i, n)...) }

// formsByTurn are the forms for the i-th case with the k-th of three numbers of ranks. In a plain run most numbers of ranks run in one of
// the two forms of goroutines. One in six runs in both and in one of processes, which is another one for each sixth seed. In a larger size all
// numbers run in all.
func formsByTurn(i, k, n int) (chosen []jobtest.Form) {
	all := forms(i/3+int(testsize.Seed()/6%6), n)
	if testsize.Turn(i+k, 6) {
		return all
	}
	for _, k := range testsize.Turns(i+k, 2, 1) {
		chosen = append(chosen, all[k])
	}
	return chosen
}

// oneForm is a form of n processes, which take turns by i. In a larger size it is all of them.
func oneForm(i, n int) (chosen []jobtest.Form) {
	all := jobtest.ProcessForms(n)
	for _, k := range testsize.Turns(i, len(all), 1) {
		chosen = append(chosen, all[k])
	}
	return chosen
}

// someForms are as many of jobtest.Forms as plain says, from one on that turn decides. In a larger size it is all of them.
func someForms(turn, n, plain int) (chosen []jobtest.Form) {
	all := jobtest.Forms(n)
	for _, k := range testsize.Turns(turn, len(all), plain) {
		chosen = append(chosen, all[k])
	}
	return chosen
}

// threadForms are the forms in one process, and in a larger size all.
func threadForms(n int) []jobtest.Form {
	all := jobtest.Forms(n)
	if testsize.N(1) == 1 {
		return all[:2]
	}
	return all
}

// inForms runs the body over n ranks in each form, as subtests.
func inForms(t *testing.T, forms []jobtest.Form, n int, name string) {
	t.Helper()
	for _, f := range forms {
		t.Run(f.Name, func(t *testing.T) { f.Run(t, n, name) })
	}
}

func add[T int | int32 | int64 | uint8 | float64](a, b T) T { return a + b }

// spread has ranks that are goroutines believe that each has a core, so that they
// meet by dissemination however few there are.
func spread(t *testing.T) {
	t.Helper()
	before := runtime.GOMAXPROCS(64)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
}
