package verbs_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/onesided/rma/verbs"
)

func TestStatusText(t *testing.T) {
	for status, want := range map[verbs.Status]string{
		verbs.StatusSuccess:         "success",
		verbs.StatusLocalLength:     "local length error",
		verbs.StatusLocalProtection: "local protection error",
		verbs.StatusRemoteInvalid:   "remote invalid request",
		verbs.StatusRemoteAccess:    "remote access error",
		verbs.StatusRemoteOperation: "remote operation error",
		verbs.StatusRetryExceeded:   "retries exceeded",
		verbs.StatusFlushed:         "flushed",
		verbs.StatusFlushed + 1:     "status 8",
		255:                         "status 255",
	} {
		if got := status.String(); got != want {
			t.Errorf("Status(%d) is %q, want %q", uint8(status), got, want)
		}
		if got := status.Error(); got != "verbs: "+want {
			t.Errorf("the error of Status(%d) is %q, want %q", uint8(status), got, "verbs: "+want)
		}
	}
}

func TestOpcodeText(t *testing.T) {
	for opcode, want := range map[verbs.Opcode]string{
		verbs.OpSend: "message", verbs.OpRDMAWriteImmediate: "write with immediate", verbs.OpRDMARead: "read",
		verbs.OpCompareSwap: "compare-swap", verbs.OpReceiveImmediate: "receive with immediate",
		verbs.OpReceiveImmediate + 1: "request", 255: "request",
	} {
		if got := opcode.String(); got != want {
			t.Errorf("Opcode(%d) is %q, want %q", uint8(opcode), got, want)
		}
	}
}

// A status can be found again in what a device made of it.
func TestStatusIsAnError(t *testing.T) {
	err := fmt.Errorf("card: request 7: %w", verbs.StatusRemoteAccess)
	var status verbs.Status
	if !errors.Is(err, verbs.StatusRemoteAccess) || errors.Is(err, verbs.StatusFlushed) {
		t.Errorf("%v is not exactly StatusRemoteAccess", err)
	}
	if !errors.As(err, &status) || status != verbs.StatusRemoteAccess {
		t.Errorf("errors.As found status %d", status)
	}
}

func TestCapabilityError(t *testing.T) {
	plain := &verbs.CapabilityError{Device: "shm", Capability: "map a Go slice", Reason: "it is not shared"}
	caused := &verbs.CapabilityError{
		Device: "shm", Capability: "read another process", Reason: "the system forbids it; allow ptrace", Cause: os.ErrPermission,
	}
	for _, c := range []struct {
		err   *verbs.CapabilityError
		text  string
		cause error
	}{
		{plain, "verbs: device shm cannot map a Go slice: it is not shared", nil},
		{caused, "verbs: device shm cannot read another process: the system forbids it; allow ptrace: permission denied", os.ErrPermission},
	} {
		wrapped := fmt.Errorf("window: creating: %w", c.err)
		var found *verbs.CapabilityError
		switch {
		case c.err.Error() != c.text:
			t.Errorf("the text is %q, want %q", c.err.Error(), c.text)
		case !errors.Is(wrapped, errors.ErrUnsupported):
			t.Errorf("%v is not ErrUnsupported", wrapped)
		case errors.Is(wrapped, verbs.ErrClosed):
			t.Errorf("%v is ErrClosed", wrapped)
		case !errors.As(wrapped, &found) || found != c.err:
			t.Errorf("errors.As does not find %v", c.err)
		case c.cause != nil && !errors.Is(wrapped, c.cause):
			t.Errorf("%v is not %v", wrapped, c.cause)
		case c.cause == nil && c.err.Unwrap() != nil:
			t.Errorf("%v wraps %v", c.err, c.err.Unwrap())
		}
	}
}

func TestSentinels(t *testing.T) {
	seen := map[string]bool{}
	for _, err := range []error{verbs.ErrClosed, verbs.ErrQueueFull, verbs.ErrMemory, verbs.ErrPeerGone, verbs.ErrRejected, verbs.ErrShortage} {
		text := err.Error()
		if !strings.HasPrefix(text, "verbs: ") || seen[text] {
			t.Errorf("the error %q does not name its package, or comes twice", text)
		}
		seen[text] = true
	}
}

func TestArgumentError(t *testing.T) {
	err := fmt.Errorf("world: opening a device: %w", &verbs.ArgumentError{Device: "tcp", Text: "Silence of 0; allowed is 1 or more"})
	var found *verbs.ArgumentError
	if want := "world: opening a device: tcp: Silence of 0; allowed is 1 or more"; err.Error() != want || !errors.As(err, &found) || found.Device != "tcp" {
		t.Errorf("the error is %q of %+v, want %q", err, found, want)
	}
}

// The errors that callers ask about.
func ExampleCapabilityError() {
	err := error(&verbs.CapabilityError{Device: "tcp", Capability: "map memory of a peer", Reason: "the peer is on another machine"})
	if errors.Is(err, errors.ErrUnsupported) {
		fmt.Println("use messages:", err)
	}
	// Output: use messages: verbs: device tcp cannot map memory of a peer: the peer is on another machine
}
