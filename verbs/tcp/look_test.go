package tcp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A peer other than the one that sent last wakes a sleeper. The next poll reads what that peer sent, although it is not
// yet time to poll other connections.
func TestWokenOnce(t *testing.T) {
	near := openWith(t, Options{})
	var fars, nears [2]*queuePair
	for i := range fars {
		fars[i], nears[i] = join(t, openWith(t, Options{}), near)
	}
	for round := range 6 {
		p, q := fars[round%2], nears[round%2]
		for range 200 {
			near.drive()
		}
		near.lastActive = nears[1-round%2].conn.slot
		near.aloneUntil = near.Now() + time.Hour
		before := near.Activity()
		p.conn.mu.Lock()
		p.conn.out.ping = true
		p.conn.transmit()
		p.conn.mu.Unlock()
		// A sleep may end for no reason, or because of what came before.
		wakes := 0
		for ; near.Activity() == before && wakes < 5; wakes++ {
			ticket := near.channel.Prepare()
			near.channel.Sleep(ticket, patience)
			near.drive()
			near.channel.Finish()
		}
		require.Less(t, wakes, 5, "round %d, %v", round, q.State())
		require.Equal(t, q.conn.slot, near.lastActive)
	}
}
