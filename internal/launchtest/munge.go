package launchtest

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
)

// mungeKeyBytes is the length of a key of mungekey(8).
const mungeKeyBytes = 128

// mungeSocket returns the socket by which the daemons of a cluster reach its munged.
func mungeSocket(dir string) string { return filepath.Join(dir, "munge.socket") }

// munge makes the key of a cluster's own munged, and returns the command that starts it.
func munge(munged, dir string) (command []string, err error) {
	key := make([]byte, mungeKeyBytes)
	_, _ = rand.Read(key)
	file := filepath.Join(dir, "munge.key")
	if err := os.WriteFile(file, key, 0o600); err != nil {
		return nil, fmt.Errorf("launchtest: %w", err)
	}
	if user := slurmUser(); user != 0 {
		if err := os.Chown(file, user, user); err != nil {
			return nil, fmt.Errorf("launchtest: %w", err)
		}
	}
	return []string{
		munged, "--foreground", "--num-threads=2", "--key-file=" + file, "--socket=" + mungeSocket(dir),
		"--pid-file=" + filepath.Join(dir, "munged.pid"), "--seed-file=" + filepath.Join(dir, "munged.seed"),
		"--log-file=" + filepath.Join(dir, "munged.log"),
	}, nil
}
