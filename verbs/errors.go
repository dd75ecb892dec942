package verbs

import (
	"errors"
	"fmt"
)

var (
	// ErrClosed: the device, queue pair, queue or region was closed before.
	ErrClosed = errors.New("verbs: closed")
	// ErrQueueFull: no more requests can be outstanding; poll and post again.
	ErrQueueFull = errors.New("verbs: queue full")
	// ErrMemory: there is not enough memory.
	ErrMemory = errors.New("verbs: not enough memory")
	// ErrPeerGone: the peer's device was closed or its process has ended.
	ErrPeerGone = errors.New("verbs: peer is gone")
	// ErrDisconnected: a side has ended the connection in order, by closing or severing it. It is an ErrPeerGone.
	// When the peer's process ends, or the peer is silent for too long, the error is ErrPeerGone and not ErrDisconnected. So
	// it is when a side that closes cannot tell, because what it sent before has not left it. A device over several rails
	// severs the others when one fails, so that its peer may get either.
	ErrDisconnected = fmt.Errorf("%w: disconnected", ErrPeerGone)
	// ErrRejected: the peer did not accept the connection.
	ErrRejected = errors.New("verbs: connection rejected")
	// ErrShortage: this side lacks descriptors, ports or buffers for a connection, which
	// the peer has not heard of. Another may be tried.
	ErrShortage = errors.New("verbs: this side is short of what a connection takes")
)

// A CapabilityError says that this device, here, cannot do a thing that others
// may. errors.Is(err, errors.ErrUnsupported) holds for it.
type CapabilityError struct {
	// Device is the device's name, Capability what was asked of it, Reason
	// why it is missing and what would bring it.
	Device, Capability, Reason string
	// Cause is the system's error, if there is one.
	Cause error
}

func (e *CapabilityError) Error() string {
	s := fmt.Sprintf("verbs: device %s cannot %s: %s", e.Device, e.Capability, e.Reason)
	if e.Cause != nil {
		s += ": " + e.Cause.Error()
	}
	return s
}

// Unwrap gives the system's error.
func (e *CapabilityError) Unwrap() error { return e.Cause }

// Is makes every CapabilityError an errors.ErrUnsupported.
func (e *CapabilityError) Is(target error) bool { return target == errors.ErrUnsupported }

// An ArgumentError is a call of a device with an argument that it never takes.
type ArgumentError struct {
	// Device is the device's name, Text what was wrong and what is allowed.
	Device, Text string
}

func (e *ArgumentError) Error() string { return e.Device + ": " + e.Text }

// Status of a completion. Every status but StatusSuccess is an error.
type Status uint8

const (
	StatusSuccess Status = iota
	// StatusLocalLength: a received message is longer than the receive.
	StatusLocalLength
	// StatusLocalProtection: a segment is outside its region or right.
	StatusLocalProtection
	// StatusRemoteInvalid: the target found the request malformed.
	StatusRemoteInvalid
	// StatusRemoteAccess: wrong key, range or right at the target.
	StatusRemoteAccess
	// StatusRemoteOperation: the target could not carry the request out.
	StatusRemoteOperation
	// StatusRetryExceeded: the peer does not answer.
	StatusRetryExceeded
	// StatusFlushed: the queue pair was in StateError.
	StatusFlushed
)

var statusText = [...]string{
	StatusSuccess:         "success",
	StatusLocalLength:     "local length error",
	StatusLocalProtection: "local protection error",
	StatusRemoteInvalid:   "remote invalid request",
	StatusRemoteAccess:    "remote access error",
	StatusRemoteOperation: "remote operation error",
	StatusRetryExceeded:   "retries exceeded",
	StatusFlushed:         "flushed",
}

func (s Status) String() string {
	if int(s) < len(statusText) {
		return statusText[s]
	}
	return fmt.Sprintf("status %d", uint8(s))
}

// Error makes a status an error value; StatusSuccess is not one.
func (s Status) Error() string { return "verbs: " + s.String() }
