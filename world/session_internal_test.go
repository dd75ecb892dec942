package world

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// lateWelcome is a line on which the welcome comes just when the context has ended that waits for it.
type lateWelcome struct {
	net.Conn
	end   func()
	ended chan struct{}
}

func (l *lateWelcome) Read(into []byte) (int, error) {
	l.end()
	<-l.ended
	return copy(into, []byte{welcome}), nil
}

func (l *lateWelcome) SetDeadline(time.Time) error {
	close(l.ended)
	return nil
}

// A session that its context has ended is none, though the welcome has come: its line is of no use.
func TestWelcomeTooLate(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	require.ErrorIs(t, awaitWelcome(ctx, &lateWelcome{end: cancel, ended: make(chan struct{})}), context.Canceled)
}
