package world

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/verbs"
)

// A doomed caller asks for a connection that cannot be accepted.
type doomed struct {
	why      error
	rejected string
}

func (c *doomed) Hello() []byte { return nil }

func (c *doomed) Accept(verbs.QueuePairConfig) (verbs.QueuePair, error) { return nil, c.why }

func (c *doomed) Reject(reason string) { c.rejected = reason }

// A rank that ends while another accepts its connection has failed; that this rank is short
// of something is no failure of the rank that called, also where the device takes it for one.
func TestNotAccepted(t *testing.T) {
	socket := func(err error) error {
		return fmt.Errorf("shm: %w", &net.OpError{Op: "read", Net: "unixpacket", Err: err})
	}
	for _, c := range []struct {
		why    error
		failed bool
	}{
		{fmt.Errorf("shm: process 7: %w", verbs.ErrPeerGone), true},
		{socket(os.NewSyscallError("recvmsg", syscall.ECONNRESET)), true},
		{socket(os.NewSyscallError("write", syscall.EPIPE)), true},
		{socket(io.EOF), true},
		{fmt.Errorf("shm: %w: %w", verbs.ErrPeerGone, syscall.EMFILE), false},
		{fmt.Errorf("shm: %w", verbs.ErrMemory), false},
		{errors.New("for no reason that is known"), false},
	} {
		t.Run(c.why.Error(), func(t *testing.T) {
			heard := make(chan struct{})
			err := Run(t.Context(), 2, func(ctx context.Context, w *World) error {
				if w.rank == 1 {
					<-heard
					return nil
				}
				defer close(heard)
				from := &doomed{why: c.why}
				w.post.mu.Lock()
				w.post.accept(w.home, 1, from)
				w.post.mu.Unlock()
				require.Equal(t, c.why.Error(), from.rejected)
				require.Zero(t, w.Failures())

				err := Broadcast(ctx, w, 1, []int{0})
				require.ErrorIs(t, err, c.why)
				var peer *PeerError
				require.Equal(t, c.failed, errors.As(err, &peer), "%v", err)
				if !c.failed {
					require.ErrorContains(t, err, "accepting a connection of rank 1")
					require.Zero(t, w.Failures())
					return nil
				}
				require.Equal(t, "world: Broadcast: rank 1 has failed: "+c.why.Error(), err.Error())
				require.Equal(t, 1, peer.Rank)
				require.ErrorIs(t, w.Failure(1), c.why)
				return nil
			})
			if err != nil && !c.failed {
				t.Error(err)
			}
		})
	}
}
