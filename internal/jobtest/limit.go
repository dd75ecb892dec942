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

// Acquire makes a test parallel, and returns when fewer tests of its kind run than the limit allows. What it waits for that
// is no time of the test: the attribute "limit" has testreport leave it out, as Go does with the wait of t.Parallel.
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
