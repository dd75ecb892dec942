package verbstest

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/onesided/rma/verbs"
)

// selfVariable has Main play the far side.
const selfVariable = "VERBSTEST_SELF"

// Main is what TestMain does where Config.Peer is [Self]: it runs the tests, or plays the
// far side of cases with the devices that it opens with open.
func Main(m *testing.M, open func() (verbs.Device, error)) {
	if os.Getenv(selfVariable) == "" {
		os.Exit(m.Run())
	}
	if err := ServePeer(os.Stdin, os.Stdout, open); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Self, as Config.Peer, is this test program again. Its TestMain calls [Main].
func Self(t testing.TB) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatalf("verbstest: this program: %v", err)
	}
	command := exec.Command(program)
	command.Env = append(os.Environ(), selfVariable+"=1")
	command.Stderr = os.Stderr
	return command
}
