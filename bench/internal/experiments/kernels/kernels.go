package kernels

import (
	"fmt"
	"slices"

	"github.com/onesided/rma/bench/internal/cases"
	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/bench/internal/stats"
)

// A Kernel is a line of the table: a command of examples that is measured as a whole job.
type Kernel struct {
	name string
	cases.Cell
	// mine and theirs are the arguments of our command and of the peers'.
	mine, theirs []string
	// Seconds is about the time of one run.
	Seconds float64
}

// Names are the kernels' commands in examples, and the names of the peers' programs. Those after the first have
// their peers in the Parallel Research Kernels.
var Names = []string{"gups", "stencil", "transpose"}

// sizes are the sizes of the kernels.
type sizes struct{ log, order, iterations int }

// Devices are the devices that jobs of kernels may use.
var Devices = []string{device.Shm, device.TCP}

// UsualSizes returns the sizes of the kernels on a device.
func UsualSizes(deviceName string) sizes {
	sizes := sizes{log: 22, order: 1000, iterations: 300}
	if deviceName == device.TCP {
		sizes.log = 20
	}
	return sizes
}

// named returns the kernels with these names, or all without names.
func named(sizes sizes, names []string) []*Kernel {
	log, order, iterations := fmt.Sprint(sizes.log), fmt.Sprint(sizes.order), fmt.Sprint(sizes.iterations)
	stencil := func(sync, about string) *Kernel {
		c := &cases.Case{Name: "stencil_" + sync, Unit: stats.MegaflopPerSecond, About: about}
		return &Kernel{"stencil", cases.Cell{Case: c, Size: sizes.order}, []string{"-n", order, "-iterations", iterations, "-sync", sync}, []string{iterations, order}, 1}
	}
	all := []*Kernel{
		{
			"gups", cases.Cell{Case: &cases.Case{Name: "gups", Unit: stats.MegaoperationsPerSecond, About: "RandomAccess: updates of random words of 2^size"}, Size: sizes.log},
			[]string{"-log", log}, []string{log}, 7,
		},
		stencil("pscw", "Stencil of that order, synchronized by post, start, complete and wait"),
		stencil("fence", "the same, synchronized by fences"),
		{
			"transpose", cases.Cell{Case: &cases.Case{Name: "transpose", Unit: stats.MegabytesPerSecond, About: "Transpose of that order, in tiles of 32"}, Size: sizes.order},
			[]string{"-order", order, "-iterations", iterations}, []string{iterations, order, "32"}, 1,
		},
	}
	return slices.DeleteFunc(all, func(k *Kernel) bool { return len(names) > 0 && !slices.Contains(names, k.name) })
}
