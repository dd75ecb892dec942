package tcp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/verbs"
)

// A rank that polls five times in Silence, which is more often than it has to, has two
// peers. It looks at one more often than at the other, but hears both in time.
func TestRarePolls(t *testing.T) {
	t.Parallel() // It waits for a silence.
	const silence = 2 * time.Second
	near := openWith(t, Options{Silence: silence})
	var pairs []*queuePair
	for range 2 {
		far := openWith(t, Options{Silence: silence})
		p, q := join(t, far, near)
		pairs = append(pairs, p, q)
	}
	begin := time.Now()
	for next := begin; time.Since(begin) < 3*silence/2; {
		for _, p := range []*queuePair{pairs[0], pairs[2]} {
			p.device.drive()
		}
		if time.Now().After(next) {
			near.drive()
			next = next.Add(silence / 5)
		}
		for i, p := range pairs {
			require.NotEqual(t, verbs.StateError, p.State(), "pair %d after %v: %v", i, time.Since(begin), p.Err())
		}
		time.Sleep(time.Millisecond)
	}
}

// Who is woken by a peer that was not the last to be heard reads what it sent at once,
// though it is not yet time to look at others than that.
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
		near.heard = nears[1-round%2].conn.slot
		near.aloneUntil = near.Now() + time.Hour
		before := near.Heard()
		p.conn.mu.Lock()
		p.conn.out.ping = true
		p.conn.transmit()
		p.conn.mu.Unlock()
		// A sleep may end for no reason, or because of what came before.
		wakes := 0
		for ; near.Heard() == before && wakes < 5; wakes++ {
			ticket := near.channel.Prepare()
			near.channel.Sleep(ticket, time.Second)
			near.drive()
			near.channel.Finish()
		}
		require.Less(t, wakes, 5, "round %d, %v", round, q.State())
		require.Equal(t, q.conn.slot, near.heard)
	}
}

// Who dwells on the peer that was heard last looks at it several times in a poll, until
// something has come.
func TestDwell(t *testing.T) {
	for _, c := range []struct {
		dwell   bool
		without Optimization
		come    string
		want    int
	}{
		{false, 0, "", 1},
		{true, 0, "", dwellLooks},
		{true, Dwelling, "", 1},
		{true, 0, "a ping", 1},
	} {
		s := newBare(t)
		s.device.options.Without = c.without
		looks := s.device.Dwell(c.dwell)
		s.device.aloneUntil = s.device.Now() + time.Minute
		s.device.drive() // does the errands of a new connection
		s.reads = 0
		if c.come != "" {
			s.feed = message(frame{kind: kindPing}, "")
		}
		s.device.drive()
		require.Equal(t, c.want, s.reads, "%+v", c)
		if c.come == "" {
			require.Equal(t, looks, s.reads, "%+v: what Dwell has told", c)
		}
	}
}
