package jobtest

import (
	"flag"
	"strconv"
	"testing"
)

// A Limit is a counting semaphore for parallel tests of one kind.
type Limit chan struct{}

// NewLimit returns a limit of n tests at a time.
func NewLimit(n int) Limit { return make(Limit, n) }

// SilentPeers is the limit for tests of jobs with a rank or a host that has gone silent. With many of them at a time a
// live rank might get no processor for the time after which a silent rank counts as dead.
var SilentPeers = NewLimit(4)

// Acquire makes a test parallel, and returns when fewer tests of its kind run than the limit allows. The attribute
// "limit" reports the time to testreport. So this wait does not count as time of the test, just as the wait of
// t.Parallel does not.
func (l Limit) Acquire(t *testing.T) {
	t.Parallel()
	t.Attr("limit", "awaited")
	l <- struct{}{}
	t.Attr("limit", "acquired")
	t.Cleanup(func() { <-l })
}

// SideBySide lets up to n parallel tests of this program run at a time, unless -parallel says otherwise. n may be
// greater than the number of cores, because most of the tests wait, for a state or for a Limit. TestMain calls it.
func SideBySide(n int) {
	flag.Parse()
	isSet := false
	flag.Visit(func(f *flag.Flag) { isSet = isSet || f.Name == "test.parallel" })
	if !isSet {
		_ = flag.Set("test.parallel", strconv.Itoa(n))
	}
}
