package main

import (
	"fmt"
	"os"
	"runtime"

	"github.com/onesided/rma/bench/internal/table"
	"github.com/onesided/rma/internal/bootstrap/pmi"
	"github.com/onesided/rma/verbs/sim"
)

// A machine describes what measurements depend on besides the programs.
type machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"` // that this process may use
	System string `json:"system"`
	Go     string `json:"go"`
}

func thisMachine() machine {
	system := runtime.GOOS
	if release := kernelRelease(); release != "" {
		system += " " + release
	}
	return machine{
		CPU:    processorName(),
		Cores:  runtime.NumCPU(),
		System: system + " " + runtime.GOARCH,
		Go:     runtime.Version(),
	}
}

func (m machine) String() string {
	cores := "cores"
	if m.Cores == 1 {
		cores = "core"
	}
	return fmt.Sprintf("%s, %d %s, %s, %s", m.CPU, m.Cores, cores, m.System, m.Go)
}

// deviceAs describes device and, for processes, how many of the processors each rank has.
func deviceAs(device string, ranks int) string {
	if device == deviceLocal {
		return fmt.Sprintf("device %s, GOMAXPROCS=%d for all ranks together", device, runtime.GOMAXPROCS(0))
	}
	share := append(pmi.Share(ranks), "GOMAXPROCS="+os.Getenv("GOMAXPROCS"))
	return fmt.Sprintf("device %s, each of %s with %s", device, table.Plural(ranks, "rank"), share[0])
}

// A simulation describes what measurements in virtual time depend on, in place of a machine.
type simulation struct {
	card *sim.Profile
	seed uint64
}

func (s simulation) String() string {
	return fmt.Sprintf("%s: %s, in virtual time, seed %d", s.card.Name, s.card.Hardware, s.seed)
}
