package job

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/verbs"
)

// A doomed caller asks for a connection that cannot be accepted.
type doomed struct {
	why      error
	rejected string
}

func (c *doomed) Hello() []byte { return nil }

func (c *doomed) Accept(verbs.QueuePairConfig) (verbs.QueuePair, error) { return nil, c.why }

func (c *doomed) Reject(reason string) { c.rejected = reason }

// A late caller asks for a connection that cannot be accepted as long as this rank is short
// of something.
type late struct {
	doomed
	short atomic.Bool
	asked atomic.Int32
}

var errShort = fmt.Errorf("no descriptors: %w", verbs.ErrShortage)

func (c *late) Accept(config verbs.QueuePairConfig) (verbs.QueuePair, error) {
	c.asked.Add(1)
	if c.short.Load() {
		return nil, errShort
	}
	return c.doomed.Accept(config)
}

// lateLink asks for that of a link.
type lateLink struct{ late }

func (*lateLink) Hello() []byte { return hello(laneLink, 1, 0) }

// A connection that this rank is too short of something to accept is accepted later: the rank at its other
// end is not refused meanwhile.
func TestLinkAcceptedLater(t *testing.T) {
	w := quiet(t)[0]
	from := &lateLink{late{doomed: doomed{why: fmt.Errorf("tcp: 10.0.0.7: %w", verbs.ErrPeerGone)}}}
	from.short.Store(true)
	wait := w.NewWaiter()
	defer wait.Finish()
	w.Exclude(func() { w.accept(w.cards[networkCard], from) })
	var err error
	for err == nil {
		err = wait.Pause(t.Context())
	}
	require.ErrorIs(t, err, verbs.ErrShortage)
	for from.asked.Load() < 3 {
		w.Poll()
	}
	require.Empty(t, from.rejected)
	from.short.Store(false)
	for from.rejected == "" {
		w.Poll()
	}
	require.Equal(t, from.why.Error(), from.rejected)
	require.Zero(t, w.FailureCount())
	require.Nil(t, w.links[1].Load())
}
