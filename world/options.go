package world

import (
	"crypto/tls"
	"log/slog"
	"time"

	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/verbs"
)

type settings = job.Settings

// An Option changes how a job is made or joined.
type Option func(*settings)

// WithDevice has all ranks reach each other over one device: "shm", "tcp" or "ibv" (an RDMA card, see package verbs/ibv). Without
// it ranks of one host share memory if the host allows that, and all others use RDMA cards if every rank has one, or else TCP. A
// device that is not available is an error. Without this option the environment variable RMA_DEVICE decides.
func WithDevice(name string) Option { return job.WithDevice(name) }

// WithNetwork has ranks that share no memory reach each other over devices of the program, instead of TCP or RDMA cards. Each rank
// calls open once with its rank in the job, and again, with the same number, for each Shrink. With Run several goroutines call it
// at once. The World closes the devices.
func WithNetwork(open func(rank int) (verbs.Device, error)) Option { return job.WithNetwork(open) }

// WithAddress sets the address at which this rank listens for ranks on other hosts. It is an address, a host name, the name of an
// interface, or a range such as 10.0.0.0/8. Without this option the environment variable RMA_ADDRESS decides. Without that the rank
// listens at the address by which the host reaches others, never at that of a container bridge. An address that this host does not
// have is an error, also where all ranks share memory.
//
// Several addresses, separated by commas, make as many rails (see package rails): all ranks need the same number. Long transfers over TCP use
// all of them.
func WithAddress(text string) Option { return job.WithAddress(text) }

// WithKey sets the job's key, 16 to 512 random bytes, by which ranks recognize each other over a network. Without this option the
// environment variable RMA_KEY_FILE names a file with the key. Without either rank 0 makes a key, which the
// exchange of the launcher, or that of [New], distributes. The key is copied. A nil key counts as no key; one of another length is an [ErrArgument].
//
// All ranks of a job need the same key. If one has another key, or only some have one, Init under a launcher and New return an
// ErrMismatch. At RMA_ROOT, where each rank needs a key, a rank with another one cannot join.
//
// A [Listener] and its clients have a key of their own: see [Listen].
func WithKey(key []byte) Option { return job.WithKey(key) }

// WithoutKey lets [Listen] and [Dial] work without a key, at a loopback address. Every user of this host can then connect to
// the Listener, and can listen in its place. Other calls ignore this option.
func WithoutKey() Option { return job.WithoutKey() }

// WithTLS encrypts everything between ranks that share no memory, by TLS 1.3 or later. Each rank is client and server: the configuration needs
// a certificate, and what the certificates of others are verified with. A nil configuration is an [ErrArgument].
func WithTLS(config *tls.Config) Option { return job.WithTLS(config) }

// WithStartTimeout sets how long calls wait for others that have not started. The default is 60 s. It limits
//
//   - how long Init and New wait for other ranks
//   - how long [Dial] tries to begin a session
//   - how long Close waits for the reader of a pipe that RMA_STATS names
//   - how long all ranks of Simulate may wait at once, in virtual time
func WithStartTimeout(d time.Duration) Option { return job.WithStartTimeout(d) }

// WithPeerTimeout sets how long a rank on another host may be silent before it counts as failed. It applies also to the rank that serves
// the exchange at RMA_ROOT. The default is 10 s. The end of a process is noticed at once. A pause of this rank itself,
// such as while it is stopped, counts as at most a fifth of d. A process of this host does not fail by silence. But it has only this time, or
// 10 s if that is longer, to let this rank map its memory.
func WithPeerTimeout(d time.Duration) Option { return job.WithPeerTimeout(d) }

// WithStall sets after how long a waiting call logs a warning, once ([WithLogger]). The warning names the ranks that the call waits for,
// by their numbers in the job, and the call that each of them is in. A rank that does not answer within 5 s is reported as such. [Dial] names the server.
// [Init] and [New] warn of ranks that have not started after 3 s, or after d if that is less. 0 means never.
// Without this option the environment variable RMA_STALL decides, as in RMA_STALL=1m; the default is 10 s. In virtual time d is virtual.
func WithStall(d time.Duration) Option { return job.WithStall(d) }

// WithLogger sets the logger of the job. Without this option warnings and errors go to [slog.Default], and nothing
// else is logged. Nil disables logging.
//
// A logger that blocks delays neither progress nor Close for long. Up to 64 lines of a World wait for it. Further lines
// are dropped, and their number is logged. Close waits for at most half a second if the logger blocks, and for two
// seconds if it is slow.
func WithLogger(logger *slog.Logger) Option { return job.WithLogger(logger) }

// WithStats has windows also count operations on mapped memory, for window.Stats. Such an operation takes longer then.
//
// The environment variable RMA_STATS has windows count, too. It names a file to which each rank appends a table of
// what it did when its World is closed; "-" is standard error. The file is created for this user alone (mode 0600); an existing file keeps its mode. A
// symbolic link, a file with several names and a file of another user are errors. A
// named pipe must have a reader when the ranks begin. Each rank keeps it open until it has written its table.
func WithStats() Option { return job.WithStats() }

// WithTrace has this rank add what it does over the network to a file when its World is closed. ui.perfetto.dev and
// chrome://tracing open the file. It shows each request from when it was posted until its completion was seen, and what the
// processor does for requests. It has the last 65536 requests, the last 65536 calls and the last 65536 spans of the rank. All ranks
// may name the same file. Each job begins it anew, for this user alone (mode 0600); an existing file keeps its mode. A symbolic
// link, a file with several names, a named pipe and a file of another user are errors. Without this option the environment variable
// RMA_TRACE decides.
//
// Loads and stores of mapped memory are no requests. This option is an error in a job whose ranks all map each other's memory. WithDevice("tcp")
// makes such a job traceable. A rank that is killed writes nothing. In virtual time this option has no effect: see [sim.Simulator.Trace].
func WithTrace(file string) Option { return job.WithTrace(file) }

// WithDebug has windows look for misuse that would otherwise go unnoticed or corrupt contents:
//
//   - operations of one epoch on the same elements that conflict: see package window, Epochs
//   - origin memory that is changed, and results that are written, before the operation is complete. A result that is
//     only read is no error, because loads are not seen.
//   - epochs that are open when the World is closed, and the call that opened each. Close of a window with an open epoch
//     is an error in any case; debug mode adds the call that opened it.
//
// The call that reveals the misuse returns a *window.MisuseError with both places in the program. A *window.MismatchError
// has the places of both calls, too. Each operation costs time and memory. Without this option the environment variable
// RMA_DEBUG decides: any value but 0.
func WithDebug() Option { return job.WithDebug() }

// WithHook calls a function after
//
//   - every operation on windows of this rank
//   - every call that makes, synchronizes or closes a window: Allocate, Create, Attach, Fence, Start, Complete, Post, Wait, Lock,
//     Unlock, the flushes, the waits for requests and notifications, Close
//   - every collective
//
// Close of a World is reported when its waits are over. The function runs in the goroutine that made the call. Several goroutines may
// call it at once. Under Run and Main one function serves all ranks: Event.Rank names the rank. The function must not use the World.
// The Event belongs to it while it runs. Each operation on mapped memory takes longer then, mostly to read the clock.
func WithHook(hook func(*Event)) Option {
	if hook == nil {
		return job.WithHook(nil)
	}
	return job.WithHook(func(event *job.Event) { hook((*Event)(event)) })
}

// An Event is what a rank did, for the function of [WithHook]. It is an operation on a window, or one of the calls
// that WithHook lists. A call that is rejected at once, or that has nothing to wait for, may have no event.
type Event struct {
	// Call is the name of the method: Put, CompareAndSwap, Flush.
	Call string
	// Rank is the number in the job of the rank that made the call: see [World.InJob]. After Shrink it is the number in the World that
	// Shrink gave. A client of Dial is rank 1.
	Rank int
	// Begun and Ended are on the clock of Now. An operation has been issued at Ended; it is complete then if Mapped.
	Begun, Ended time.Duration
	// Operation reports whether the event is an operation, which Target and the fields after it describe.
	Operation bool
	// Window is the number of the window of an operation, or of a call that makes, synchronizes or closes one, the same on all ranks.
	// It is 0 for collectives, for Close of a World, for a call that made no window, and for WaitAll, WaitAny and Completed.
	Window uint32
	// The operation concerns Count elements at Displacement of Target, Bytes bytes in all.
	Target, Displacement, Count, Bytes int
	// Op is that of an accumulate.
	Op reduce.Op
	// Mapped reports whether this rank's processor applied the operation.
	Mapped bool
}
