package ibv

import (
	"errors"
	"fmt"
)

// ErrProtocol reports that a peer that has proved the key breaks the protocol of the connection.
var ErrProtocol = errors.New("ibv: not the dialogue of queue pairs")

// A TransitionError reports that a card did not bring a queue pair into a state.
type TransitionError struct {
	// Device and Port are the card's. QueuePair is the number of the queue pair.
	Device    string
	Port      int
	QueuePair uint32
	// State is the requested state: INIT, RTR or RTS.
	State string
	// Reason names the attribute that is wrong and what is allowed. If all look right, it lists the requested
	// attributes.
	Reason string
	// Cause is the system's error.
	Cause error
}

func (e *TransitionError) Error() string {
	return fmt.Sprintf("ibv: %s port %d: queue pair %#x does not become %s: %s: %v", e.Device, e.Port, e.QueuePair, e.State, e.Reason, e.Cause)
}

// Unwrap returns the system's error.
func (e *TransitionError) Unwrap() error { return e.Cause }
