package tcp

import (
	"fmt"

	"github.com/onesided/rma/verbs"
)

// severRounds bounds how long Sever reads if a peer that was presumed dead continues to send.
const severRounds = 64

// Sever ends the connection to a peer that has been given up. Requests that have arrived are executed, and no later
// ones: the mutex is held throughout, and a connection in shutdown discards what it reads.
func (q *queuePair) Sever() {
	c := q.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase >= phaseShutdown {
		return
	}
	buffer := new(inputBuffer) // the device's may be in use
	for round := 0; round < severRounds && c.phase < phaseShutdown && c.stream != nil && c.receive(buffer); round++ {
	}
	if c.phase >= phaseShutdown {
		return
	}
	c.out.bye = byeSevered
	c.fail(fmt.Errorf("tcp: %s: given up: %w", c.peer, verbs.ErrDisconnected), shutdownInOrder)
	c.transmit()
}
