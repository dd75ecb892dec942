package jobtest

import (
	"flag"
	"strconv"
	"testing"
)

// A Limit is a counting semaphore for parallel tests of one kind.
type Limit chan struct{}

// NewLimit is a limit of n tests at a time.
func NewLimit(n int) Limit { return make(Limit, n) }

// Silent is for tests of jobs with a rank or a host that says nothing any more. If there were many at a time, a rank that
// lives might have no processor for as long as it may be silent.
var Silent = NewLimit(4)

// Acquire makes a test parallel, and returns when fewer tests of its kind run than the limit allows. The attribute "limit"
// tells testreport when, so that this wait does not count as time of the test, just as the wait of t.Parallel does not.
func (l Limit) Acquire(t *testing.T) {
	t.Parallel()
	t.Attr("limit", "awaited")
	l <- struct{}{}
	t.Attr("limit", "acquired")
	t.Cleanup(func() { <-l })
}

// SideBySide lets up to n parallel tests of this program run at a time, unless -parallel says otherwise: more than there
// are cores, where most of them wait, for a state or for a Limit. It is for TestMain.
func SideBySide(n int) {
	flag.Parse()
	isSet := false
	flag.Visit(func(f *flag.Flag) { isSet = isSet || f.Name == "test.parallel" })
	if !isSet {
		_ = flag.Set("test.parallel", strconv.Itoa(n))
	}
}
