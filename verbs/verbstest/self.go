package verbstest

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/onesided/rma/verbs"
)

// selfVariable makes Main play the far side.
const selfVariable = "VERBSTEST_SELF"

// hasMain: the package's TestMain calls Main. Without that, each peer would run the tests, which start peers.
var hasMain bool

// Main is the body of TestMain if Config.Peer is [Self]: it runs the tests, or plays the far side of cases with devices
// that it opens with open.
func Main(m *testing.M, open func() (verbs.Device, error)) {
	hasMain = true
	if os.Getenv(selfVariable) == "" {
		os.Exit(m.Run())
	}
	if err := ServePeer(os.Stdin, os.Stdout, open); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Self, as Config.Peer, runs this test program again. Its TestMain must call [Main].
func Self(t testing.TB) *exec.Cmd {
	t.Helper()
	if !hasMain {
		t.Fatal("verbstest: a peer that is a process is this test program: its package's TestMain must call verbstest.Main")
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatalf("verbstest: this program: %v", err)
	}
	command := exec.Command(program)
	command.Env = append(os.Environ(), selfVariable+"=1")
	command.Stderr = os.Stderr
	return command
}
