package rails

import (
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
func (c *counted) Wake()                       { c.rung <- struct{}{} }

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

// A watched is a wire that has a test look when something is posted.
type watched struct {
	*wire
	look func()
}

func (w watched) PostSend(requests []verbs.SendRequest) (int, error) {
	w.look()
	return w.wire.PostSend(requests)
}

// A part counts as outstanding until its request has completed. A poll that reads onOthers as 0 finds the completion,
// and nothing wakes a sleeper for it later.
func TestPartIsOutstandingUntilTheRequestCompletes(t *testing.T) {
	q, _ := between(t)
	take := func() int { return q.sends.completed.Take(make([]verbs.Completion, 1)) }
	posts := 0
	q.pairs[0] = watched{new(wire), func() {
		posts++
		require.EqualValues(t, 1, q.device.onOthers.Load())
		require.Zero(t, take())
	}}
	// A request has a last part on another rail. A message after it is deferred, and posted when that has completed.
	q.count, q.next, q.known, q.onOthers = 2, 2, 1, 1
	q.device.onOthers.Store(1)
	q.records[0] = record{flags: verbs.Signalled, parts: 1}
	q.deferred.add(&verbs.SendRequest{Opcode: verbs.OpSend, Segments: []verbs.Segment{{Memory: make([]byte, 8)}}})
	q.completedOther(keyRail, &verbs.Completion{ID: q.id(0)})
	require.Equal(t, 1, posts)
	require.Zero(t, q.device.onOthers.Load())
	require.Equal(t, 1, take())
}
