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

// rootPort is below those that a system gives to whoever asks for any.
const rootPort = 7000

// RootAddress is one at which rank 0 can serve a job that no launcher starts, on this machine: a loopback address that
// other tests do not have, also those of other processes at the same time. A port that was free a moment ago can be
// another's now.
func RootAddress() string {
	return fmt.Sprintf("127.%d.%d.%d:%d", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254), rootPort)
}

// KeyFile writes the key of a job that no launcher starts, and returns the file, which is for this user only.
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
