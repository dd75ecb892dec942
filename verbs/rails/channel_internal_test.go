package rails

import (
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
