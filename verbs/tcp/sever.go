package tcp

import (
	"fmt"

	"github.com/onesided/rma/verbs"
)

// severRounds bounds how long Sever reads, where a peer that was taken for dead goes on
// sending.
const severRounds = 64

// Sever ends the connection to a peer that has been given up. What has come of its
// requests is carried out, and then nothing more: the mutex is held throughout, and
// who parts reads to throw away.
func (q *queuePair) Sever() {
	c := q.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	for round := 0; round < severRounds && c.phase < phaseParting && c.stream != nil && c.receive(); round++ {
	}
	if c.phase >= phaseParting {
		return
	}
	c.out.bye = byeSevered
	c.fail(fmt.Errorf("tcp: %s: given up: %w", c.peer, verbs.ErrDisconnected), partInOrder)
	c.transmit()
}
