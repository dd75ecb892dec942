package shm_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/shm"
	"github.com/onesided/rma/world/worldtest"
)

// refuseEnvironment makes a process of this binary one to which memfd_create is refused.
const refuseEnvironment = "SHM_TEST_REFUSE"

// TestMemfdRefused opens a device where the system gives no shared memory.
func TestMemfdRefused(t *testing.T) {
	if os.Getenv(refuseEnvironment) == "" {
		self, err := os.Executable()
		require.NoError(t, err)
		command := exec.CommandContext(t.Context(), self, "-test.run", "^TestMemfdRefused$")
		command.Env = append(os.Environ(), refuseEnvironment+"=1")
		output, err := command.CombinedOutput()
		require.NoError(t, err, "%s", output)
		return
	}
	require.NoError(t, worldtest.Refuse(unix.SYS_MEMFD_CREATE))
	_, err := shm.Open(shm.Options{})
	var missing *verbs.CapabilityError
	require.ErrorAs(t, err, &missing)
	require.ErrorContains(t, err, "memfd_create")
	require.ErrorIs(t, err, unix.EPERM)
}
