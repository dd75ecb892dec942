package launchtest

import (
	"os/exec"
	"strconv"
	"testing"
)

// Hydra makes a command that starts n ranks of a program under MPICH's mpiexec.hydra,
// with env added to their environment. Before the program there may be flags of mpiexec.
// The command ends with the test, or after Limit.
//
// Hydra does not notice a rank that ends before it has said a word to its manager; the
// others then wait, and its proxy spins, until they are killed.
func Hydra(t testing.TB, n int, env []string, program ...string) *exec.Cmd {
	t.Helper()
	mpiexec := need(t, "mpiexec.hydra")[0]
	arguments := append([]string{mpiexec, "-n", strconv.Itoa(n)}, program...)
	k := newCommand(t.Context(), t, orders{Limit: Limit}, arguments...)
	k.Env = append(k.Env, env...)
	return k.Cmd
}
