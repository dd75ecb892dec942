package job_test

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/proof"
	"github.com/onesided/rma/world"
)

// Holders of the key that fall silent after the proof, as many as the Listener has places for them and more, keep no other
// client out.
func TestSilentKeyHolders(t *testing.T) {
	t.Parallel()
	const silent = 80
	key := proof.NewKey()
	// The patience of the whole session does not end what this test waits for.
	l, ends := listening(t, world.WithKey(key), world.WithStartTimeout(10*await.Limit))
	for i := range silent {
		conn, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		defer conn.Close()
		require.NoError(t, proof.Dial(conn, key, "rma session 1"))
		if i%2 > 0 {
			// The begin of a text that never comes.
			_, err = conn.Write([]byte{1})
			require.NoError(t, err)
		}
	}
	w, err := world.Dial(t.Context(), l.Addr().String(), world.WithKey(key), world.WithStartTimeout(await.Limit))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.NoError(t, <-ends)
}
