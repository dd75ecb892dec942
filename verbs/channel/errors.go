package channel

import (
	"errors"
	"fmt"
)

// ErrProtocol: the peer has written or sent what no peer does. The channel is of no use any
// more.
var ErrProtocol = errors.New("channel: the peer does not keep to the protocol")

// A ProtocolError tells what the peer has broken. errors.Is(err, ErrProtocol) holds for it.
type ProtocolError struct {
	// What was wrong was Value; allowed was Least to Most.
	What               string
	Value, Least, Most uint64
}

func (e *ProtocolError) Error() string {
	return fmt.Sprintf("%v: %s is %d; allowed is %d to %d", ErrProtocol, e.What, e.Value, e.Least, e.Most)
}

// Is makes every ProtocolError an ErrProtocol.
func (e *ProtocolError) Is(target error) bool { return target == ErrProtocol }
