// Package root lets the ranks of a job find each other without a process manager: in a Kubernetes StatefulSet, or
// started by a shell on each host. Each rank needs four environment variables:
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
// The [Member] is the same PMI-1 client as under a manager. Rank 0 is the manager: it listens on RMA_ROOT, and serves
// as long as the job lives.
//
// Guarantees:
//
//   - Ranks start in any order, each within the start timeout of the others. Join returns when all have joined. If some do
//     not join in time, the root reports which are missing and which callers it has rejected. An unknown host name,
//     or a root that does not answer, may be temporary: the rank retries, and [Settings.Logger] reports it.
//   - Before a connection has proved the key, nothing else from it is parsed. It is closed if it has not proved the
//     key within some seconds, or sooner when there are many and others wait.
//   - Ranks that hold the key but have another size of the job, or other [Settings.Terms], end the job at once for
//     all ranks: [ErrDisagreement]. A process without the key can end nothing.
//   - A rank number belongs to the first process that claims it. A rank that ends before the job has begun releases
//     its number, so that it can be started again. So can a root that ends by then.
//   - When the job has begun, a connection that breaks concerns that rank alone. The other connections continue, but
//     no later barrier of the exchange can complete. A host that does not answer is given up after
//     [Settings.Silence]. Otherwise the library's own connections detect the death of a rank.
//   - Ranks that have left a job may join the next one at the same root. A rank whose [Settings.After] names the
//     previous job waits until that job's root has ended, as long as other ranks need it.
//
// The exchange can be read on the network unless [Settings] have a TLS configuration. With TLS the proof of the key
// is encrypted, too.
//
// Rank 0 listens on the address to which the host of RMA_ROOT resolves there. If the system's hosts file maps the
// host's own name to 127.0.1.1, ranks on other hosts cannot reach it by that name: RMA_ROOT then needs the address.
package root
