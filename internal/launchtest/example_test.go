package launchtest_test

import (
	"fmt"
	"testing"

	"github.com/onesided/rma/internal/launchtest"
)

// A test of a program under Slurm, on two nodes.
func ExampleSlurm() {
	test := func(t *testing.T) {
		program := launchtest.Build(t, "./examples/wordcount")
		cluster := launchtest.Slurm(t, 2)
		fmt.Print(cluster.Run(t, "--mpi=pmi2", "-N", "2", "-n", "4", program, "-verify", "/usr/share/doc"))
	}
	fmt.Printf("%T\n", test)
	// Output: func(*testing.T)
}
