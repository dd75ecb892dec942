package proof_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/proof"
)

// An error about a key says what to do.
func TestKeyErrorsSayWhatToDo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "job.key")
	require.NoError(t, os.WriteFile(path, []byte("0a0a\n"), 0o600))
	_, err := proof.ReadKeyFile(path)
	require.EqualError(t, err, "proof: key file rejected: "+path+": not a key: 2 bytes, allowed are 16 to 512; this makes one, for all ranks: (umask 077; openssl rand -hex 32 > "+path+")")
	for _, name := range []string{"RMA_KEY_FILE", "WithKey", "all ranks of a job must have the same key"} {
		require.ErrorContains(t, proof.ErrKey, name)
	}
}
