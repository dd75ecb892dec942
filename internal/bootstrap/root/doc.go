// Package root lets the ranks of a job find each other where no process manager has
// started them: a Kubernetes StatefulSet, a shell on each host. Four variables in the
// environment of every rank are enough:
//
//	RMA_ROOT      host:port where rank 0 listens, the same for all
//	RMA_RANK      the rank's number, from 0
//	RMA_SIZE      the number of ranks, the same for all
//	RMA_KEY_FILE  a file with the job's key, the same for all (see proof.ReadKeyFile)
//
// On each host, with its own number:
//
//	(umask 077; openssl rand -hex 32 > job.key)    # once; every host gets a copy
//	RMA_ROOT=node0:7000 RMA_SIZE=3 RMA_KEY_FILE=job.key RMA_RANK=1 ./program
//
// A rank joins with
//
//	settings, err := root.FromEnvironment(nil)
//	member, err := root.Join(ctx, settings, time.Minute)
//
// and has in the [Member] the same PMI-1 client as under a manager. Rank 0 is the
// manager: it listens on RMA_ROOT, and serves as long as the job lives.
//
// What holds:
//
//   - Ranks start in any order, each within the patience of the others. Join returns
//     when all are there; when they are not in time, the root says which are missing
//     and whom it has turned away. A host name that is not known, and a root that does
//     not answer, may do better later; [Settings.Logger] is told of them meanwhile.
//   - Before a connection has proved the key nothing of it is parsed, and it is closed
//     if it has not within some seconds, or sooner when there are many and others wait.
//   - Ranks that hold the key but were told another size of the job, or other
//     [Settings.Terms], end it at once for all, for it can never be whole:
//     [ErrDisagreement]. Who does not hold the key can end nothing.
//   - A number belongs to the first that claims it. A rank that ends before the job
//     has begun gives its number back, so that it can be started again; a root that
//     ends by then can be started again as well.
//   - When the job has begun, a connection that breaks is a matter of that rank alone:
//     the others' go on, except that no barrier of the exchange can be complete any
//     more. A host that answers no more is given up after [Settings.Silence].
//     That a rank has died is otherwise for the connections of the library to notice.
//   - Ranks that have left a job may join the next, at the same root. One that comes while
//     others still need the last job's root, which it tells by [Settings.After], waits
//     until that has ended.
//
// The exchange is readable on its way unless [Settings] have a TLS configuration; the
// proof of the key is then inside of it.
//
// Rank 0 listens on the address to which the host of RMA_ROOT resolves there. Where the
// system's file of hosts maps a host's own name to 127.0.1.1, ranks on other hosts
// cannot reach it under that name: RMA_ROOT then needs the address.
package root
