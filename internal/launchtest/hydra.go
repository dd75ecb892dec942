package launchtest

import (
	"os/exec"
	"strconv"
	"testing"
)

// Hydra returns a command that starts n ranks of a program under MPICH's mpiexec.hydra, with env added to their
// environment. Flags of mpiexec may precede the program. The command ends with the test, or after Limit.
//
// Hydra does not notice a rank that ends before its first message to its manager. The others then wait, and its proxy
// spins, until they are killed.
func Hydra(t testing.TB, n int, env []string, program ...string) *exec.Cmd {
	t.Helper()
	mpiexec := need(t, "mpiexec.hydra")[0]
	arguments := append([]string{mpiexec, "-n", strconv.Itoa(n)}, program...)
	k := newCommand(t.Context(), t, supervisorConfig{Limit: Limit}, arguments...)
	k.Env = append(k.Env, env...)
	return k.Cmd
}
