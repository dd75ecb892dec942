// Package launchtest starts jobs for tests as users do: under Slurm's srun, in a Slurm of the test's own, and under
// MPICH's mpiexec.hydra.
//
//	func TestUnderSlurm(t *testing.T) {
//		program := launchtest.Build(t, "./examples/wordcount")
//		cluster := launchtest.Slurm(t, 2)
//		fmt.Print(cluster.Run(t, "--mpi=pmi2", "-N", "2", "-n", "4", program, "-verify", dir))
//	}
//
// A test is skipped, with the reason, if a launcher is not installed. A Slurm that is installed but does not start fails
// the test of root, if munge is installed, too. Otherwise the user or the machine may be the cause, and the test is
// skipped.
//
// Starting a Slurm takes a third of a second. So tests whose jobs leave nothing behind share one, by SharedSlurm.
//
// RootAddress and KeyFile are for jobs without a launcher. ProcessOf returns a process that is not the test's child
// and reports its end.
//
// # Nothing is left behind
//
// Launchers start processes that are not the test's children, and leave some of them running when a rank fails. So each
// command of this package runs under a supervisor. A supervisor is a process of the same test binary, and adopts the
// processes that its command leaves behind. It kills all of them, by process number, when
//
//   - the command has ended,
//   - its context ends,
//   - its time limit is over,
//   - the test's process is gone, for whatever reason. The supervisor reads from a pipe to which only the test's
//     process can write.
//
// A test does not end before its supervisors. The supervisor of SharedSlurm ends with the process.
//
// An environment variable makes a process of the test binary a supervisor. It runs in the initialization of this
// package, before tests and main. The supervisor removes the variable from the environment of its command.
//
// # Invariants
//
// An exec.Cmd of this package can be changed before it is started. Its ExtraFiles are in use and are not passed on.
// Its Process is the supervisor: interrupts and termination signals sent to it go to the launcher. Cancel ends all
// processes. Killing the Process ends the launcher but not the processes that it has started.
//
// Variables of a launcher (PMI_, SLURM_, …) that the test has inherited are removed from a command's environment.
// Variables that a test appends to its Env reach all ranks. Variables that differ between ranks must be set by the
// program, or by a shell in front of it:
//
//	cluster.Run(t, "-N", "2", "-n", "4", "sh", "-c", `RMA_HOST=$SLURM_NODEID exec "$0"`, program)
//
// A Slurm authenticates its clients by its own munge, with its own key. If munge is not installed, Slurm's
// authentication is off. The ranks do not notice that: they talk to the daemons by a file that they inherit, and
// recognize each other by the key that rank 0 makes. Every user of the machine could then make the Slurm run jobs. So
// under root it and its jobs run as an unprivileged user. Programs and files must be readable for others, as those of
// Build, Self and Directory are.
package launchtest
