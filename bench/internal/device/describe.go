package device

import (
	"fmt"
	"os"
	"runtime"

	"github.com/onesided/rma/bench/internal/table"
	"github.com/onesided/rma/internal/bootstrap/pmi"
	"github.com/onesided/rma/verbs/sim"
)

// Describe describes device and, for processes, how many of the processors each rank has.
func Describe(device string, ranks int) string {
	if device == Local {
		return fmt.Sprintf("device %s, GOMAXPROCS=%d for all ranks together", device, runtime.GOMAXPROCS(0))
	}
	share := append(pmi.Share(ranks), "GOMAXPROCS="+os.Getenv("GOMAXPROCS"))
	return fmt.Sprintf("device %s, each of %s with %s", device, table.Plural(ranks, "rank"), share[0])
}

// A Simulation describes what measurements in virtual time depend on, in place of a machine.
type Simulation struct {
	Card *sim.Profile
	Seed uint64
}

func (s Simulation) String() string {
	return fmt.Sprintf("%s: %s, in virtual time, seed %d", s.Card.Name, s.Card.Hardware, s.Seed)
}
