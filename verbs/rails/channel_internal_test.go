package rails

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/verbs"
)

// counted is a channel that counts those who are announced on it, and does something before each Prepare.
type counted struct {
	verbs.CompletionChannel
	announced int
	before    func()
	rung      chan struct{}
}

func (c *counted) Prepare() uint32 {
	if c.before != nil {
		c.before()
	}
	c.announced++
	return 0
}
func (c *counted) Finish()                     { c.announced-- }
func (c *counted) Sleep(uint32, time.Duration) { <-c.rung }
func (c *counted) Ring()                       { c.rung <- struct{}{} }

// A poll that comes before the announcement does not count as the one that has to look at all rails after it.
func TestPollBeforeTheAnnouncement(t *testing.T) {
	d := new(device)
	c := &channel{device: d, first: &counted{before: func() { d.soon.Store(false) }}}
	c.Prepare()
	require.True(t, d.soon.Load())
}

// Who is announced when the device closes is taken back once, whoever notices first.
func TestAnnouncedWhenClosed(t *testing.T) {
	other := &counted{rung: make(chan struct{}, 1)}
	e := &ear{channel: other, begin: make(chan struct{}, 1)}
	c := &channel{device: new(device), first: new(counted), ears: []*ear{e}}
	c.Prepare()
	require.Equal(t, 1, other.announced)
	e.listening = true
	c.close()
	require.False(t, c.hears(e))
	require.Zero(t, other.announced)
	c.Finish()
	require.Zero(t, other.announced)
}

// A poll that finds nothing abroad finds the completion of what was: nobody is woken for it any more.
func TestNothingAbroadHasCompleted(t *testing.T) {
	q, _ := between(t)
	q.count, q.next, q.known = 1, 1, 1
	id := q.id(0)
	for range 50_000 {
		q.at, q.count, q.known, q.abroad = 0, 1, 1, 1
		q.records[0] = record{flags: verbs.Signalled, parts: 1}
		q.device.abroad.Store(1)
		done := make(chan struct{})
		go func() {
			defer close(done)
			q.completedOther(keyRail, &verbs.Completion{ID: id})
		}()
		for q.device.abroad.Load() > 0 {
			runtime.Gosched()
		}
		taken := q.sends.held.Take(make([]verbs.Completion, 1))
		<-done
		require.Equal(t, 1, taken)
	}
}
