package world

import (
	"context"

	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/verbs/sim"
)

// Run makes n ranks, 1 to 65536, as goroutines of this process, calls body for each, and returns when all have ended. The
// World of a rank is closed when its body returns. The context of bodies ends when ctx does.
//
// A rank has failed when its body returns an error or panics. Run returns a *[RankError] for each rank that failed by itself,
// joined. Failures that only followed from those, which are PeerErrors, are left out unless there is no other.
//
// A launcher does not change what Run does: each process makes n ranks of its own, and Run logs a warning. See [Main]. [Init]
// returns an error in a body, or if it gets the context of a body that is still running: the rank has a World already.
func Run(ctx context.Context, n int, body func(ctx context.Context, w *World) error, options ...Option) error {
	return job.Run(ctx, n, inJob(body), ofJob(options)...)
}

// Main is a whole program whose ranks call body:
//
//	func main() { world.Main(body) }
//
// The environment says which ranks these are. The first of these cases applies:
//
//   - A launcher has started this process, or RMA_ROOT names where its job gathers: the process is a rank of that job, as by
//     [Init]. RMA_RANKS and RMA_SIMULATE are errors then.
//   - RMA_SIMULATE names one of [sim.Profiles]: the ranks run in virtual time, as by [Simulate], with seed 1.
//     RMA_DEVICE is an error then.
//   - Otherwise ranks are goroutines of this process, as by [Run].
//
// RMA_RANKS says how many ranks the process makes. The default is the number of processors that it may use
// (GOMAXPROCS). Main reads no flags: the program parses its own before it calls Main.
//
// Main returns if no rank has failed. Otherwise it prints the error to standard error, once, and ends the process with
// status 1. A process that is one rank of a job prints its error before other ranks can see its end, and does not wait for
// them. A panic in its body ends it like any other program.
//
// SIGINT and SIGTERM end the context of the body. A SIGINT that was ignored when the process started, as in the background of a
// script, stays ignored. SIGTERM does not, even after trap "" TERM: Go's runtime replaces it first.
// The status of a process that fails after a signal is 128 plus the number of the signal. After a signal the process waits one more second for other
// ranks. A second signal ends it at once.
func Main(body func(ctx context.Context, w *World) error, options ...Option) {
	job.Main(inJob(body), ofJob(options)...)
}

// Init joins the job that a process manager has started this process for. The process manager is rmarun, or another one that serves
// PMI-1, such as MPICH's mpiexec and Slurm's srun --mpi=pmi2. Without a process manager RMA_ROOT, RMA_RANK and RMA_SIZE, with RMA_KEY_FILE, say
// which rank this is and where rank 0 gathers the job. A process with neither is a job of one rank. If another launcher has started it
// as one of several, as Open MPI's mpirun does, Init logs a warning. RMA_RANKS and RMA_SIMULATE, by which [Main] makes ranks, are errors.
//
// If a rank cannot join, or its settings differ from those of others, Init returns an error on all ranks at once. If a rank does not
// start, Init returns an error after the time of [WithStartTimeout]. Until then the logger ([WithLogger]) gets the ranks that are
// missing, and those that were rejected. At RMA_ROOT a rank counts as not started if it cannot reach rank 0, lacks the key, or has a
// wrong setting of its own. It may be started again. [WithKey] says which key the job has.
//
// A process is one rank: Init returns ErrInitialized while the World of an earlier Init is open, and in a body of Run, Main or
// Simulate. After Close all ranks may call Init again, for another job of the same ranks, under rmarun and at RMA_ROOT. Hydra and
// Slurm serve one job a process. A process whose Init or Close has failed under a process manager must be started again. When the
// process manager ends before the World is closed, the process gets SIGTERM.
//
// ctx bounds this call only, not the life of the World. If ctx has ended before the call, Init does nothing and may be called
// again. Otherwise it removes PMI_FD and PMI_PORT from the environment, so that a process which a rank starts is no rank.
func Init(ctx context.Context, options ...Option) (*World, error) {
	j, err := job.Init(ctx, ofJob(options)...)
	return of(j), err
}

// An Exchange is an all-gather of short texts: each rank passes one text, and gets those of all ranks in the order of ranks.
// It returns when all ranks have called it, or with an error when ctx ends. [New] calls it twice: an exchange over files or
// keys numbers its rounds, as in docs/guide/launching.md. Texts are printable, without spaces, and have at most 900 bytes.
// They include the key of the job, unless [WithKey] or RMA_KEY_FILE gives it to each rank: others must not see them.
type Exchange func(ctx context.Context, mine string) (all []string, err error)

// New joins a job whose processes have found each other by means of their own. Every process passes its rank, from 0, the number
// of ranks, and an exchange between them.
//
// New returns an error on all ranks, once all texts have arrived, if a rank cannot join (its RMA_ADDRESS is wrong, for instance),
// or if ranks disagree on the device or the size. A rank with too large a size waits for ranks that do not exist, until the time
// of [WithStartTimeout] is over. So do all ranks of a job of which one is missing. Both log a warning. The key of the job is as
// [WithKey] says. ctx bounds this call only, not the life of the World.
func New(ctx context.Context, rank, size int, exchange Exchange, options ...Option) (*World, error) {
	j, err := job.New(ctx, rank, size, job.Exchange(exchange), ofJob(options)...)
	return of(j), err
}

// Simulate is Run in the virtual time of a simulator that has no ranks yet. Each rank is one task of the simulator and has one of
// its cards, as a process has on a host of its own. The card, and what the library posts, polls, registers and
// copies for operations, take the time that the profile says. The body takes no time but for [World.Compute].
// The same seed gives the same run if the bodies do the same.
//
// Ranks wait for each other only by their Worlds: see [sim.Simulator.Go]. WithDevice, WithNetwork and other options about real networks have no
// effect. When all ranks have waited for the time of [WithStartTimeout], in virtual time, their calls return [ErrDeadlock]. When
// tasks wait outside of the library Simulate returns a *sim.DeadlockError. A plan of faults may only name ranks of the job.
func Simulate(ctx context.Context, s *sim.Simulator, n int, body func(ctx context.Context, w *World) error, options ...Option) error {
	return job.Simulate(ctx, s, n, inJob(body), ofJob(options)...)
}

// inJob returns a body of ranks of package job, nil for nil.
func inJob(body func(ctx context.Context, w *World) error) func(ctx context.Context, j *job.World) error {
	if body == nil {
		return nil
	}
	return func(ctx context.Context, j *job.World) error { return body(ctx, of(j)) }
}

// ofJob returns options as those of package job.
func ofJob(options []Option) []job.Option {
	all := make([]job.Option, len(options))
	for i, option := range options {
		all[i] = option
	}
	return all
}
