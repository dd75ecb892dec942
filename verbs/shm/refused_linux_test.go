package shm_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/shm"
)

// refuseEnvironment makes a process of this binary one to which memfd_create is refused.
const refuseEnvironment = "SHM_TEST_REFUSE"

// refused runs the test once more, in a process to which a system call is refused. It
// reports whether this is that process.
func refused(t *testing.T, call uint32) bool {
	t.Helper()
	if os.Getenv(refuseEnvironment) != "" {
		require.NoError(t, jobtest.Refuse(call))
		return true
	}
	self, err := os.Executable()
	require.NoError(t, err)
	command := exec.CommandContext(t.Context(), self, "-test.run", "^"+t.Name()+"$")
	command.Env = append(os.Environ(), refuseEnvironment+"=1")
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s", output)
	return false
}

// TestMemfdRefused opens a device where the system gives no shared memory.
func TestMemfdRefused(t *testing.T) {
	if !refused(t, unix.SYS_MEMFD_CREATE) {
		return
	}
	_, err := shm.Open(shm.Options{})
	var missing *verbs.CapabilityError
	require.ErrorAs(t, err, &missing)
	require.ErrorContains(t, err, "memfd_create")
	require.ErrorIs(t, err, unix.EPERM)
}

// TestPidfdRefused reaches and watches a device where processes cannot be watched: its
// connection tells of its end.
func TestPidfdRefused(t *testing.T) {
	if !refused(t, unix.SYS_PIDFD_OPEN) {
		return
	}
	near, far := openProcess(t), openProcess(t)
	lost := make(chan error)
	_, err := near.(verbs.Watcher).Watch(far.Address(), func(cause error) { lost <- cause })
	require.NoError(t, err)
	_, err = near.(verbs.Mapper).Neighbor(far.Address())
	require.NoError(t, err)
	require.NoError(t, far.Close())
	require.ErrorIs(t, <-lost, verbs.ErrPeerGone)
	require.NoError(t, near.Close())
}
