package world

import (
	"context"
	"fmt"
	"net"

	"github.com/onesided/rma/internal/job"
)

// A Listener accepts sessions of processes that were started at other times, by other users: see [Dial]. window.Serve
// serves windows to them. Its methods may be called from any goroutine. Close and window.Serve return an [ErrArgument] for a nil
// Listener and for the zero Listener; Addr panics.
type Listener struct {
	_ noCopy
	l *job.Listener
}

func (l *Listener) inner() *job.Listener {
	if l == nil {
		return nil
	}
	return l.l
}

// Listen listens at a host:port for clients that begin sessions. Port 0 means any free port. The options are
// those of [New], with a key that clients must have: that of WithKey, or of the file that RMA_SERVE_KEY_FILE names. Without
// either Listen takes that of RMA_KEY_FILE and logs a warning, because its holders can also join the
// job. [WithoutKey] needs no key, on loopback addresses only.
//
// docs/guide/security.md says what a holder of the key is trusted with, and what an attacker on the path can do without TLS.
//
// All connections go to the one port, with two exceptions. Sessions have ports of their own with RDMA cards, and where
// [WithAddress] or RMA_ADDRESS says at which addresses this process listens. ctx bounds this call only, not the life of the
// Listener.
func Listen(ctx context.Context, address string, options ...Option) (*Listener, error) {
	l, err := job.Listen(ctx, address, ofJob(options)...)
	if err != nil {
		return nil, err
	}
	return &Listener{l: l}, nil
}

// Addr returns the address at which the Listener listens.
func (l *Listener) Addr() net.Addr {
	j := l.inner()
	if j == nil {
		panic("world: Addr of a Listener that Listen has not made")
	}
	return j.Addr()
}

// Close ends listening. Sessions that were accepted continue. A client connects to the server with its first operation on a window: if it
// has not done so before Close, it cannot any more.
func (l *Listener) Close() error {
	j := l.inner()
	if j == nil {
		return fmt.Errorf("world: Close: %w: a Listener that Listen has not made", ErrArgument)
	}
	return j.Close()
}

// Dial begins a session with the process that listens at a host:port, see [Listen]. It returns a World of two ranks: the server
// is rank 0 and this process, the client, is rank 1. Windows of rank 0 are attached to it: see window.Attach. Its only collective
// is Close, which ends the session and must be called. When the server ends, or ends the session, calls return a [*PeerError] of
// rank 0. ctx bounds this call only, not the life of the World.
//
// The options are those of [New]. Both sides need the same key, and both or neither a TLS configuration (WithTLS) with a certificate. The
// device is chosen as for ranks on different hosts: RDMA cards if both have one, else TCP.
//
// Dial does not wait for a server that is not listening. It returns an error at once, or after a few seconds if the network
// does not answer. If the server is busy, Dial tries again until ctx ends or the time of [WithStartTimeout] is over. A server
// that evicts the client says why: Dial, or the calls that need rank 0, then return an [ErrEvicted]. When it stops serving, calls return
// an [ErrLeft].
func Dial(ctx context.Context, address string, options ...Option) (*World, error) {
	j, err := job.Dial(ctx, address, ofJob(options)...)
	return of(j), err
}
