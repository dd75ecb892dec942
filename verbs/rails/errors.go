package rails

import (
	"errors"
	"fmt"

	"github.com/onesided/rma/verbs"
)

// ErrProtocol reports that a peer has sent what package rails never sends.
var ErrProtocol = errors.New("rails: the peer broke the protocol")

func protocolError(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrProtocol, fmt.Sprintf(format, args...))
}

func argumentError(format string, args ...any) error {
	return &verbs.ArgumentError{Device: "rails", Text: fmt.Sprintf(format, args...)}
}

func (d *device) closedError(call string) error {
	return fmt.Errorf("rails: device at %s: %s: %w", d.address, call, verbs.ErrClosed)
}

// of adds the rail to an error. It returns nil for nil.
func of(rail int, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("rails: rail %d: %w", rail, err)
}
