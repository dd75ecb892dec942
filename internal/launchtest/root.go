package launchtest

import (
	cryptorand "crypto/rand"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// rootPort is below the ports that a system chooses.
const rootPort = 7000

// RootAddress returns an address at which rank 0 can serve a job without a launcher, on this machine. It is a
// loopback address that no other test has, even in another process at the same time. A free port of a common address
// would not do: another process might take it.
func RootAddress() string {
	return fmt.Sprintf("127.%d.%d.%d:%d", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254), rootPort)
}

// KeyFile writes the key of a job without a launcher, and returns the file. Only this user can read it.
func KeyFile(t testing.TB) string {
	t.Helper()
	key := make([]byte, 32)
	_, _ = cryptorand.Read(key)
	path := filepath.Join(t.TempDir(), "job.key")
	if err := os.WriteFile(path, []byte(hex.EncodeToString(key)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
