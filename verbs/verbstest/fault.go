package verbstest

import (
	"errors"

	"github.com/onesided/rma/verbs"
)

// The error classes that a fault keeps on its way between processes.
var classes = []error{
	verbs.ErrClosed, verbs.ErrQueueFull, verbs.ErrMemory, verbs.ErrPeerGone,
	verbs.ErrDisconnected, verbs.ErrRejected, verbs.ErrShortage, errors.ErrUnsupported,
}

// A fault is an error of a device, in a form that can be sent.
type fault struct {
	Text    string
	Classes []int
	// Capability is set for a *verbs.CapabilityError.
	Capability bool
	cause      error // only where it was made
}

// faultOf returns nil for nil.
func faultOf(err error) *fault {
	if err == nil {
		return nil
	}
	f := &fault{Text: err.Error(), Capability: isCapability(err), cause: err}
	for i, class := range classes {
		if errors.Is(err, class) {
			f.Classes = append(f.Classes, i)
		}
	}
	return f
}

// error returns a nil interface for a nil fault.
func (f *fault) error() error {
	if f == nil {
		return nil
	}
	return f
}

func (f *fault) Error() string { return f.Text }

func (f *fault) Unwrap() error { return f.cause }

func (f *fault) Is(target error) bool {
	for _, i := range f.Classes {
		if i < len(classes) && classes[i] == target {
			return true
		}
	}
	return false
}

// isCapability reports whether err says that the device lacks a capability, in the form of the contract.
func isCapability(err error) bool {
	var f *fault
	if errors.As(err, &f) && f.cause == nil {
		return f.Capability
	}
	var capability *verbs.CapabilityError
	return errors.As(err, &capability) && capability.Reason != "" && errors.Is(err, errors.ErrUnsupported)
}
