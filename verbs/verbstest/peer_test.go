package verbstest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/onesided/rma/verbs"
)

// peerVariable names, in the environment of a child, the devices that it serves.
const peerVariable = "VERBSTEST_PEER"

func TestMain(m *testing.M) {
	kind := os.Getenv(peerVariable)
	if kind == "" {
		m.Run()
		return
	}
	if err := serve(kind); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(kind string) error {
	switch kind {
	case "card":
		n := newNetwork("")
		return ServePeer(os.Stdin, os.Stdout, func() (verbs.Device, error) { return n.Open(nil), nil })
	case "mute":
		return fmt.Errorf("this peer says nothing on its standard output")
	}
	return fmt.Errorf("no devices of kind %q", kind)
}

// peerCommand is this test's program as a child.
func peerCommand(t testing.TB, kind string) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program)
	command.Env = append(os.Environ(), peerVariable+"="+kind)
	return command
}

func startPeer(t *testing.T, kind string) *child {
	t.Helper()
	l, err := process(peerCommand(t, kind))
	if err != nil {
		t.Fatal(err)
	}
	k := newChild(l, time.Minute)
	t.Cleanup(func() { k.kill() })
	return k
}

var testStation = command{Open: &stationConfig{Limit: 50 * time.Millisecond}}

func TestProcessCarriesStepsOut(t *testing.T) {
	k := startPeer(t, "card")
	for range 2 { // a station after another
		if a := k.ask(testStation); a.Failure != "" {
			t.Fatal(a.Failure)
		}
		a := k.do(allocateStep{Size: 100, Access: all})
		if a.Failure != "" || a.Err != nil || a.Region.Length != 100 || a.Handle != 0 {
			t.Fatalf("allocating: %+v", a)
		}
		if a := k.do(storeStep{segment{0, 10, 14}, []byte("word")}); a.Failure != "" {
			t.Fatal(a.Failure)
		}
		if a := k.do(loadStep{segment{0, 9, 15}}); string(a.Bytes) != "\x00word\x00" {
			t.Fatalf("loading: %+v", a)
		}
	}
	if err := k.end(); err != nil {
		t.Fatal(err)
	}
}

// What a device says keeps its class between processes.
func TestProcessKeepsErrors(t *testing.T) {
	k := startPeer(t, "card")
	if a := k.ask(testStation); a.Failure != "" {
		t.Fatal(a.Failure)
	}
	k.do(allocateStep{Size: 8})
	k.do(deregisterStep{0})
	err := k.do(deregisterStep{0}).Err.error()
	if !errors.Is(err, verbs.ErrClosed) || errors.Is(err, verbs.ErrMemory) {
		t.Errorf("a second Deregister in another process: %v", err)
	}
	if a := k.do(acceptStep{Hello: []byte("nobody")}); !strings.Contains(a.Failure, `"nobody" did not come within 50ms`) {
		t.Errorf("waiting for nobody: %+v", a)
	}
	if err := k.end(); err != nil {
		t.Error(err)
	}
}

func TestProcessThatEnds(t *testing.T) {
	k := startPeer(t, "mute")
	if a := k.ask(testStation); !strings.Contains(a.Failure, "peer") {
		t.Errorf("a peer that ends answered %+v", a)
	}
	if err := k.end(); err == nil || !strings.Contains(err.Error(), "says nothing") {
		t.Errorf("the end of a peer that failed: %v", err)
	}
}

func TestProcessThatIsKilled(t *testing.T) {
	k := startPeer(t, "card")
	if a := k.ask(testStation); a.Failure != "" {
		t.Fatal(a.Failure)
	}
	waiting := make(chan answer)
	go func() { waiting <- k.do(acceptStep{Hello: []byte("nobody")}) }()
	k.kill()
	if a := <-waiting; a.Failure == "" {
		t.Errorf("a step in a peer that was killed: %+v", a)
	}
	if a := k.do(addressStep{}); a.Failure == "" {
		t.Errorf("a step for a peer that was killed: %+v", a)
	}
}

func TestServePeerRefusesRubbish(t *testing.T) {
	for _, input := range []string{"rubbish that is no step", strings.Repeat("\xff", 100)} {
		err := ServePeer(strings.NewReader(input), new(strings.Builder), func() (verbs.Device, error) {
			t.Errorf("%q opened a device", input)
			return nil, nil
		})
		if err == nil || !strings.HasPrefix(err.Error(), "verbstest: ") {
			t.Errorf("ServePeer of %q: %v", input, err)
		}
	}
}
