package pmi

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
)

// FinalizeContext ends with its context while the manager does not respond. The next call waits for the response to the
// same request.
func TestFinalizeContext(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	respond, played := make(chan struct{}), make(chan error, 1)
	go func() {
		err := append(hydra[:4:4], "> cmd=finalize").play(far)
		cancel(enough)
		<-respond
		played <- errors.Join(err, dialogue{"< cmd=finalize_ack"}.play(far))
	}()
	c, err := New(near, 0, 1)
	require.NoError(t, err)
	err = c.FinalizeContext(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, enough)
	require.ErrorContains(t, err, "the process manager has not answered")
	ended := make(chan error, 1)
	go func() { ended <- c.FinalizeContext(t.Context()) }()
	await.Parked(t, "pmi.(*Client).FinalizeContext", 1)
	close(respond)
	require.NoError(t, await.Receive(t, "the response", ended))
	require.NoError(t, <-played)
}
