package testsize

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"
)

// Least is a size at which N returns 1.
const Least = 1e-9

// Seeds yields the seeds of N(n) random samples.
func Seeds(n int) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		first := Seed()
		for seed := first; seed < first+uint64(N(n)) && yield(seed); seed++ {
		}
	}
}

// Samples is like Seeds, for the goroutine of a test. If a sample fails the test, the test logs the command that
// repeats only this sample.
func Samples(t testing.TB, n int) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		failed := t.Failed()
		try := func(seed uint64) (more bool) {
			returned := false
			defer func() {
				// While a panic unwinds, the test does not count as failed yet.
				if !failed && (t.Failed() || !returned && !t.Skipped()) {
					failed = true
					t.Logf("to repeat: %s", Replay(t.Name(), seed, Least))
				}
			}()
			more = yield(seed)
			returned = true
			return more
		}
		for seed := range Seeds(n) {
			if !try(seed) {
				return
			}
		}
	}
}

// Random returns a source of random numbers from Seed. If the test fails it logs the command that repeats it.
func Random(t testing.TB, stream uint64) *rand.Rand {
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("to repeat: %s", Again(t.Name()))
		}
	})
	return rand.New(rand.NewPCG(Seed(), stream))
}

// Turn reports whether to try case i of n cases. A plain run tries one of them, and a run of size n all. Another seed
// tries others.
func Turn(i, n int) bool {
	return (uint64(i)+Seed()%uint64(n))%uint64(n) < uint64(N(1))
}

// Turns returns the cases to try of n cases: N(plain), but at most n. They are consecutive from one that turn and the
// seed select, so that callers with different turns try different cases.
func Turns(turn, n, plain int) []int {
	var chosen []int
	for more := range min(n, N(plain)) {
		chosen = append(chosen, (turn+int(Seed()%uint64(n))+more)%n)
	}
	return chosen
}

// Replay returns the command that runs the named test of this program with a seed and a size.
func Replay(test string, seed uint64, size float64) string {
	elements := strings.Split(test, "/")
	for i, e := range elements {
		// The pattern is in single quotes, so it must not contain any.
		elements[i] = "^" + strings.ReplaceAll(regexp.QuoteMeta(e), "'", ".") + "$"
	}
	return fmt.Sprintf("%s=%d %s=%v go test %s%s -run '%s'", seedVariable, seed, sizeVariable, size, Either("", "-race "), tested(), strings.Join(elements, "/"))
}

// Again returns the command that runs the named test of this program with the seed and size of this run.
func Again(test string) string { return Replay(test, Seed(), Size()) }

// tested returns the package that this program tests.
func tested() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "."
	}
	return "." + strings.TrimPrefix(strings.TrimSuffix(info.Path, ".test"), info.Main.Path)
}
