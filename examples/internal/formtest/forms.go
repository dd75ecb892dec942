//go:build !race

package formtest

import "github.com/onesided/rma/internal/jobtest"

const (
	raced = false
	hosts = "hosts"
)

var forms = [...]form{
	{"goroutines", jobtest.Goroutines}, {"tcp", jobtest.TCP}, {"apart", jobtest.Apart}, {"processes", jobtest.Processes},
	{hosts, jobtest.Hosts},
}
