package verbs

import (
	"errors"
	"fmt"
)

var (
	// ErrClosed reports that the device, queue pair, queue or region was closed before.
	ErrClosed = errors.New("verbs: closed")
	// ErrQueueFull reports that no more requests can be outstanding. Poll and post again.
	ErrQueueFull = errors.New("verbs: queue full")
	// ErrMemory reports that there is not enough memory.
	ErrMemory = errors.New("verbs: not enough memory")
	// ErrPeerGone reports that the peer's device was closed or its process has ended.
	ErrPeerGone = errors.New("verbs: peer is gone")
	// ErrDisconnected reports that one side has closed or severed the connection cleanly. It wraps ErrPeerGone.
	//
	// The error is a plain ErrPeerGone, not an ErrDisconnected, if the peer's process ends, if the peer is silent for
	// too long, or if the closing side cannot notify the peer because data that it sent before has not left yet. A
	// device over several rails severs the other rails when one fails, so its peer may get either error.
	ErrDisconnected = fmt.Errorf("%w: disconnected", ErrPeerGone)
	// ErrRejected reports that the peer did not accept the connection.
	ErrRejected = errors.New("verbs: connection rejected")
	// ErrShortage reports that this side lacks file descriptors, ports or buffers for a connection. The peer has not
	// been contacted. The caller may try again.
	ErrShortage = errors.New("verbs: this side is short of what a connection takes")
)

// A CapabilityError reports that this device cannot do something here that other devices may. It matches
// errors.ErrUnsupported with errors.Is.
type CapabilityError struct {
	// Device is the device's name, Capability what was requested. Reason is why it is missing and what would provide
	// it.
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

// Unwrap returns the system's error.
func (e *CapabilityError) Unwrap() error { return e.Cause }

// Is reports whether target is errors.ErrUnsupported.
func (e *CapabilityError) Is(target error) bool { return target == errors.ErrUnsupported }

// An ArgumentError reports a call of a device with an argument that the device never accepts.
type ArgumentError struct {
	// Device is the device's name. Text is what was wrong and what is allowed.
	Device, Text string
}

func (e *ArgumentError) Error() string { return e.Device + ": " + e.Text }

// Status is the status of a completion. Every status but StatusSuccess is an error.
type Status uint8

const (
	StatusSuccess Status = iota
	// StatusLocalLength: a received message is longer than the receive.
	StatusLocalLength
	// StatusLocalProtection: a segment is outside its region, or its region lacks the right.
	StatusLocalProtection
	// StatusRemoteInvalid: the target found the request malformed.
	StatusRemoteInvalid
	// StatusRemoteAccess: the key, range or right is wrong at the target.
	StatusRemoteAccess
	// StatusRemoteOperation: the target could not execute the request.
	StatusRemoteOperation
	// StatusRetryExceeded: the peer does not respond.
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

// Error returns the status as an error text. A StatusSuccess is not an error.
func (s Status) Error() string { return "verbs: " + s.String() }
