package shm_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/verbs"
)

// aloneEnvironment makes a process of this binary one that runs a test alone.
const aloneEnvironment = "SHM_TEST_ALONE"

// alone runs the test once more, in a process of its own. It reports whether this is that process.
func alone(t *testing.T) bool {
	t.Helper()
	if os.Getenv(aloneEnvironment) != "" {
		return true
	}
	self, err := os.Executable()
	require.NoError(t, err)
	parts := strings.Split(t.Name(), "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	command := exec.CommandContext(t.Context(), self, "-test.run", strings.Join(parts, "/"))
	command.Env = append(os.Environ(), aloneEnvironment+"=1")
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s", output)
	return false
}

// TestPidfdRefused reaches and watches a device where the system gives no pidfd: its connection tells of its end, and
// its program's own memory is not reached, for a reason that the error says.
func TestPidfdRefused(t *testing.T) {
	if !alone(t) {
		return
	}
	require.NoError(t, jobtest.RefusePidfds())
	near, far := openProcess(t), openProcess(t)
	lost := make(chan error)
	_, err := near.(verbs.Watcher).Watch(far.Address(), func(cause error) { lost <- cause })
	require.NoError(t, err)
	to, err := near.(verbs.Mapper).Neighbor(far.Address())
	require.NoError(t, err)
	region, err := far.RegisterMemory(make([]byte, 8), verbs.RemoteRead)
	require.NoError(t, err)
	var missing *verbs.CapabilityError
	require.ErrorAs(t, to.ReadAt(make([]byte, 8), region.Remote(), 0), &missing)
	require.ErrorIs(t, missing.Cause, unix.EPERM)
	require.NoError(t, far.Close())
	require.ErrorIs(t, <-lost, verbs.ErrPeerGone)
	require.NoError(t, near.Close())
}
