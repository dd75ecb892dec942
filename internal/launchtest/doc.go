// Package launchtest starts jobs for tests the way users do: under Slurm's srun, in a
// Slurm of the test's own, and under MPICH's mpiexec.hydra.
//
//	func TestUnderSlurm(t *testing.T) {
//		program := launchtest.Build(t, "./examples/wordcount")
//		cluster := launchtest.Slurm(t, 2)
//		fmt.Print(cluster.Run(t, "--mpi=pmi2", "-N", "2", "-n", "4", program, "-verify", dir))
//	}
//
// A test is skipped, with the reason, where a launcher is not installed or does not run.
//
// To start a Slurm takes a third of a second. Tests whose jobs leave nothing behind share one, by SharedSlurm.
//
// For jobs that no launcher starts there are RootAddress and KeyFile. ProcessOf sees the end of a process that is not the
// test's child.
//
// # Nothing is left behind
//
// Launchers start processes that are not the test's children, and leave some of them
// running when a rank fails. So each command of this package runs under a keeper, a
// process of the same test binary that adopts whatever its command leaves alone. It kills
// all of them, by process number, when the command has ended, when its context
// ends, when its time limit is over, and when the test's process is gone,
// by whatever cause: a keeper reads from a pipe that only the test's process can
// write to. A test does not end before its keepers have; that of SharedSlurm ends with the process.
//
// A keeper is started by the initialization of this package, before tests and
// main run. It is told by an environment variable, which it takes away from what it
// starts.
//
// # Invariants
//
// An exec.Cmd of this package can be changed before it is started, but its ExtraFiles are
// taken and are not handed down. Its Process is the keeper: interrupts and termination
// signals sent to it go to the launcher. Cancel ends everything; killing the Process ends
// the launcher but not what that has started.
//
// Variables of a launcher (PMI_, SLURM_, …) that the test has inherited are left out of a
// command's environment. What a test appends to its Env comes to all ranks. What
// differs between them is a matter of the program, or of a shell in front of it:
//
//	cluster.Run(t, "-N", "2", "-n", "4", "sh", "-c", `RMA_HOST=$SLURM_NODEID exec "$0"`, program)
//
// A Slurm knows who talks to it by a munge of its own, with a key of its own. Where munge
// is not installed Slurm's authentication is switched off, which the ranks see nothing of:
// they talk to the daemons by a file that they inherit, and know each other by the key that
// rank 0 makes. Whoever is on the machine could then have the Slurm run jobs, so under root
// it and its jobs run as an unprivileged user: programs and files must be readable to
// others, as those of Build, Self and Directory are.
package launchtest
