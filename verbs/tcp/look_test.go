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

// A device that dwells polls the connection that received last several times in a poll, until something has arrived.
func TestDwell(t *testing.T) {
	for _, c := range []struct {
		dwell   bool
		without Optimization
		come    string
		want    int
	}{
		{false, 0, "", 1},
		{true, 0, "", dwellLooks},
		{true, Dwell, "", 1},
		{true, 0, "a ping", 1},
	} {
		s := newBare(t)
		s.device.options.Without = c.without
		looks := s.device.Dwell(c.dwell)
		s.device.aloneUntil = s.device.Now() + time.Minute
		s.device.drive() // makes the visits of a new connection
		s.reads = 0
		if c.come != "" {
			s.feed = message(frame{kind: kindPing}, "")
		}
		s.device.drive()
		require.Equal(t, c.want, s.reads, "%+v", c)
		if c.come == "" {
			require.Equal(t, looks, s.reads, "%+v: what Dwell has returned", c)
		}
	}
}
