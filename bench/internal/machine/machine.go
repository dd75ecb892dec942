package machine

import (
	"fmt"
	"runtime"
)

// A Machine describes what measurements depend on besides the programs.
type Machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"` // that this process may use
	System string `json:"system"`
	Go     string `json:"go"`
}

func (m Machine) String() string {
	cores := "cores"
	if m.Cores == 1 {
		cores = "core"
	}
	return fmt.Sprintf("%s, %d %s, %s, %s", m.CPU, m.Cores, cores, m.System, m.Go)
}

// This returns the machine on which this process runs.
func This() Machine {
	system := runtime.GOOS
	if release := kernelRelease(); release != "" {
		system += " " + release
	}
	return Machine{
		CPU:    processorName(),
		Cores:  runtime.NumCPU(),
		System: system + " " + runtime.GOARCH,
		Go:     runtime.Version(),
	}
}
