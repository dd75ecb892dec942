package tcp_test

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/tcp"
	"github.com/onesided/rma/verbs/verbstest"
)

// peerEnvironment makes this test binary a peer process of the suite.
const peerEnvironment = "TCP_TEST_PEER"

func TestMain(m *testing.M) {
	if os.Getenv(peerEnvironment) == "" {
		os.Exit(m.Run())
	}
	open := func() (verbs.Device, error) { return tcp.Open(tcp.Options{}) }
	if err := verbstest.ServePeer(os.Stdin, os.Stdout, open); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Ranks that are in one process.
func TestConformance(t *testing.T) {
	verbstest.Run(t, verbstest.Config{Driven: true, Limit: 5 * time.Second, Open: openPlain})
}

// Ranks that are processes.
func TestProcessConformance(t *testing.T) {
	verbstest.Run(t, verbstest.Config{
		Driven: true, Limit: 5 * time.Second,
		Open: openPlain,
		Peer: func(t testing.TB) *exec.Cmd {
			self, err := os.Executable()
			require.NoError(t, err)
			cmd := exec.Command(self)
			cmd.Env = append(os.Environ(), peerEnvironment+"=1")
			cmd.Stderr = os.Stderr
			return cmd
		},
	})
}

func openPlain(t testing.TB) verbs.Device {
	device, err := tcp.Open(tcp.Options{})
	require.NoError(t, err)
	return device
}
