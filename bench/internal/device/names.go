package device

import (
	"runtime"
	"strings"

	"github.com/onesided/rma/bench/internal/cli"
	"github.com/onesided/rma/verbs/sim"
)

// Names of devices.
const (
	Local = "local" // ranks are goroutines of this process
	Shm   = "shm"   // ranks are processes of this machine that share memory
	TCP   = "tcp"   // ranks are processes of this machine that use only sockets
	IBV   = "ibv"   // ranks are processes of this machine that use only an RDMA card
	// Sim and the name of a profile are a device on which ranks run in virtual time.
	Sim = "sim:"
)

// Names are the names that a command line may have.
var Names = []string{Local, Shm, TCP, IBV, Sim + "PROFILE"}

// SimulatedCard is the device on which switches of cards are shown.
const SimulatedCard = Sim + "ndr-2024"

// Default returns the device of a command line without one.
func Default() string {
	if runtime.GOOS == "linux" {
		return Shm
	}
	return Local
}

// Card returns the profile of a simulated device.
func Card(device string) (sim.Profile, error) {
	name := strings.TrimPrefix(device, Sim)
	card, err := sim.ByName(name)
	if err != nil {
		return card, cli.Usagef("-device %s: there is no profile %q; allowed are %s", device, name, strings.Join(sim.Profiles(), ", "))
	}
	return card, nil
}

// SimulatedLoops are enough in virtual time: in the first the library may still register memory of its own.
const SimulatedLoops = 2

// MaxRanks keeps a typing error from starting a hundred thousand processes.
const MaxRanks = 4096
