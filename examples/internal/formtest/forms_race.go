//go:build race

package formtest

import "github.com/onesided/rma/internal/jobtest"

const (
	raced = true
	hosts = "hosts"
)

// forms are as many as without the race detector, so that a seed stands for as many ranks.
var forms = [...]form{
	{"goroutines", jobtest.Goroutines}, {"apart", jobtest.Apart}, {"apart", jobtest.Apart}, {"goroutines", jobtest.Goroutines},
	{hosts, jobtest.Hosts},
}
