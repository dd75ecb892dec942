package tcp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/verbs"
)

// In these tests no time passes but what age adds, so that a slow machine keeps nobody silent.

// age has a device believe that a time has passed.
func (d *device) age(by time.Duration) {
	d.driving.Lock()
	defer d.driving.Unlock()
	d.opened = d.opened.Add(-by)
	for _, c := range *d.table.Load() {
		if c != nil {
			c.mu.Lock()
			for _, at := range []*time.Time{&c.health.receivedAt, &c.health.movedAt, &c.health.pingedAt, &c.health.tickedAt} {
				*at = at.Add(-by)
			}
			c.mu.Unlock()
		}
	}
}

// arrived returns when all that queue pairs have sent has come to the sockets of their peers.
func arrived(t *testing.T, pairs ...*queuePair) {
	t.Helper()
	for _, p := range pairs {
		await.True(t, "what was sent to arrive", func() bool {
			left, err := unix.IoctlGetInt(p.conn.stream.descriptor(), unix.TIOCOUTQ)
			require.NoError(t, err)
			return left == 0
		})
	}
}

// A peer whose rank does not poll, as if its process was stopped, is given up. One that polls is not.
func TestPeerThatIsSilent(t *testing.T) {
	near, far := openWith(t, Options{}), openWith(t, Options{})
	p, q := join(t, near, far)
	const step = 20 // of a silence
	for range 3 * step {
		for _, d := range []*device{near, far} {
			d.age(near.silence / step)
			d.drive()
			arrived(t, p, q)
		}
		require.Equal(t, verbs.StateReady, p.State(), "an idle peer that is served was given up: %v", p.Err())
	}
	for range 2 * step {
		near.age(near.silence / step)
		near.drive()
	}
	require.Equal(t, verbs.StateError, p.State())
	require.ErrorIs(t, p.Err(), verbs.ErrPeerGone)
	require.NotErrorIs(t, p.Err(), verbs.ErrDisconnected)
	require.ErrorContains(t, p.Err(), "the peer was silent for")
}

// A rank that sleeps until it is rung learns of the silence, too.
func TestSilenceWakes(t *testing.T) {
	near, far := openWith(t, Options{}), openWith(t, Options{})
	p, _ := join(t, near, far)
	// Only now, for what takes long to be joined may be silent meanwhile.
	near.silence = minLimit
	near.nextTick.Store(0)
	given := make(chan struct{})
	go func() {
		defer close(given)
		for channel := near.Channel(); p.State() != verbs.StateError; {
			ticket := channel.Prepare()
			if near.drive(); p.State() != verbs.StateError {
				channel.Sleep(ticket, -1)
			}
			channel.Finish()
		}
	}()
	await.Closed(t, "the silence to be noticed", given)
	require.ErrorContains(t, p.Err(), "the peer was silent for")
}

// A rank that polls five times in Silence, which is more often than it has to, has two
// peers. It looks at one more often than at the other, but hears both in time.
func TestRarePolls(t *testing.T) {
	near := openWith(t, Options{})
	devices := []*device{near}
	var pairs []*queuePair
	for range 2 {
		far := openWith(t, Options{})
		p, q := join(t, far, near)
		devices, pairs = append(devices, far), append(pairs, p, q)
	}
	const step, rare = 50, 10 // of a silence, and of steps
	for round := range 3 * step {
		for i, d := range devices {
			d.age(near.silence / step)
			if i > 0 || round%rare == 0 {
				d.drive()
				arrived(t, pairs...)
			}
		}
		for i, p := range pairs {
			require.NotEqual(t, verbs.StateError, p.State(), "pair %d after %d steps: %v", i, round, p.Err())
		}
	}
}
