package rails

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/verbs"
)

// counted is a channel that counts the sleepers that are announced on it, and calls a function before each Prepare.
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

// After Prepare a poll looks at all rails. A poll that came before the announcement does not stand for it.
func TestPollBeforeTheAnnouncement(t *testing.T) {
	d := new(device)
	c := &channel{device: d, first: &counted{before: func() { d.soon.Store(false) }}}
	c.Prepare()
	require.True(t, d.soon.Load())
}

// An announcement that stands when the device closes is taken back once, by whichever goroutine notices first.
func TestAnnouncedWhenClosed(t *testing.T) {
	other := &counted{rung: make(chan struct{}, 1)}
	e := &relay{channel: other, begin: make(chan struct{}, 1)}
	c := &channel{device: new(device), first: new(counted), relays: []*relay{e}}
	c.Prepare()
	require.Equal(t, 1, other.announced)
	e.sleeping = true
	c.close()
	require.False(t, c.await(e))
	require.Zero(t, other.announced)
	c.Finish()
	require.Zero(t, other.announced)
}

// A poll that reads onOthers as 0 finds the completion of the last part that was outstanding. Nothing wakes a sleeper for
// it later.
func TestPollSeesCompletionOfLastPart(t *testing.T) {
	q, _ := between(t)
	q.count, q.next, q.known = 1, 1, 1
	id := q.id(0)
	for range 50_000 {
		q.at, q.count, q.known, q.onOthers = 0, 1, 1, 1
		q.records[0] = record{flags: verbs.Signalled, parts: 1}
		q.device.onOthers.Store(1)
		done := make(chan struct{})
		go func() {
			defer close(done)
			q.completedOther(keyRail, &verbs.Completion{ID: id})
		}()
		for q.device.onOthers.Load() > 0 {
			runtime.Gosched()
		}
		taken := q.sends.held.Take(make([]verbs.Completion, 1))
		<-done
		require.Equal(t, 1, taken)
	}
}
