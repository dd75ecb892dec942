package main

import (
	"runtime"
	"strings"

	"github.com/onesided/rma/bench/internal/cli"
	"github.com/onesided/rma/verbs/sim"
)

// Names of devices.
const (
	deviceLocal = "local" // ranks are goroutines of this process
	deviceShm   = "shm"   // ranks are processes of this machine that share memory
	deviceTCP   = "tcp"   // ranks are processes of this machine that use only sockets
	deviceIBV   = "ibv"   // ranks are processes of this machine that use only an RDMA card
	// deviceSim and the name of a profile are a device on which ranks run in virtual time.
	deviceSim = "sim:"
)

// devices are the names that a command line may have.
var devices = []string{deviceLocal, deviceShm, deviceTCP, deviceIBV, deviceSim + "PROFILE"}

// simulatedCard is the device on which switches of cards are shown.
const simulatedCard = deviceSim + "ndr-2024"

// defaultDevice returns the device of a command line without one.
func defaultDevice() string {
	if runtime.GOOS == "linux" {
		return deviceShm
	}
	return deviceLocal
}

// cardOf returns the profile of a simulated device.
func cardOf(device string) (sim.Profile, error) {
	name := strings.TrimPrefix(device, deviceSim)
	card, err := sim.ByName(name)
	if err != nil {
		return card, cli.Usagef("-device %s: there is no profile %q; allowed are %s", device, name, strings.Join(sim.Profiles(), ", "))
	}
	return card, nil
}

// simulatedLoops are enough in virtual time: in the first the library may still register memory of its own.
const simulatedLoops = 2

// maxRanks keeps a typing error from starting a hundred thousand processes.
const maxRanks = 4096
