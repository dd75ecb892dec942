package ibv

import (
	"errors"
	"fmt"
)

// ErrProtocol: a peer that has proved the key does not keep to the dialogue in which
// queue pairs find each other.
var ErrProtocol = errors.New("ibv: not the dialogue of queue pairs")

// A TransitionError is a queue pair that its card did not bring into a state.
type TransitionError struct {
	// Device and Port are the card's; QueuePair is the number of the queue pair.
	Device    string
	Port      int
	QueuePair uint32
	// State is the one that was wanted: INIT, RTR or RTS.
	State string
	// Reason names the attribute that is wrong and what is allowed, or those that were
	// asked for if all of them look right.
	Reason string
	// Cause is the system's error.
	Cause error
}

func (e *TransitionError) Error() string {
	return fmt.Sprintf("ibv: %s port %d: queue pair %#x does not become %s: %s: %v", e.Device, e.Port, e.QueuePair, e.State, e.Reason, e.Cause)
}

// Unwrap gives the system's error.
func (e *TransitionError) Unwrap() error { return e.Cause }
