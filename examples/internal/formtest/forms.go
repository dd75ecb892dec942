package formtest

import (
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/internal/testsize"
)

const hosts = "hosts"

// forms are the forms of Run. Of two consecutive ones, and of the last and the first, one maps memory and one does
// not; hosts do both. There are equally many under the race detector, so that a seed stands for the same number of
// ranks.
var forms = testsize.Either([]jobtest.Form{
	{Name: "goroutines", Run: jobtest.Goroutines}, {Name: "tcp", Run: jobtest.TCP}, {Name: "processes", Run: jobtest.Processes},
	{Name: "apart", Run: jobtest.Apart}, {Name: hosts, Run: jobtest.Hosts},
}, []jobtest.Form{
	{Name: "goroutines", Run: jobtest.Goroutines}, {Name: "apart", Run: jobtest.Apart}, {Name: "apart", Run: jobtest.Apart},
	{Name: "goroutines", Run: jobtest.Goroutines}, {Name: hosts, Run: jobtest.Hosts},
})
