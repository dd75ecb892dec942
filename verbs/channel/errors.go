package channel

import (
	"errors"
	"fmt"
)

// ErrProtocol reports that the peer has written or sent what no peer does. The channel cannot be used any more.
var ErrProtocol = errors.New("channel: the peer does not keep to the protocol")

// A ProtocolError describes what the peer has broken. It matches ErrProtocol with errors.Is.
type ProtocolError struct {
	// What was wrong. It was Value; allowed was Least to Most.
	What               string
	Value, Least, Most uint64
}

func (e *ProtocolError) Error() string {
	return fmt.Sprintf("%v: %s is %d; allowed is %d to %d", ErrProtocol, e.What, e.Value, e.Least, e.Most)
}

// Is reports whether target is ErrProtocol.
func (e *ProtocolError) Is(target error) bool { return target == ErrProtocol }
