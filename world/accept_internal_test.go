package world

import (
	"context"
	"errors"
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

// A rank that ends while another accepts its connection has failed; that this rank cannot
// accept one is else no failure of the rank that called.
func TestNotAccepted(t *testing.T) {
	for _, c := range []struct {
		why    error
		failed bool
	}{
		{fmt.Errorf("shm: process 7: %w", verbs.ErrPeerGone), true},
		{fmt.Errorf("shm: %w", verbs.ErrMemory), false},
		{errors.New("for no reason that is known"), false},
	} {
		t.Run(c.why.Error(), func(t *testing.T) {
			heard := make(chan struct{})
			err := Run(t.Context(), 2, func(ctx context.Context, w *World) error {
				if w.rank == 1 {
					<-heard
					return nil
				}
				defer close(heard)
				from := &doomed{why: c.why}
				w.post.mu.Lock()
				w.post.accept(w.home, 1, from)
				w.post.mu.Unlock()
				require.Equal(t, c.why.Error(), from.rejected)
				require.Zero(t, w.Failures())

				err := Broadcast(ctx, w, 1, []int{0})
				require.ErrorIs(t, err, c.why)
				var peer *PeerError
				require.Equal(t, c.failed, errors.As(err, &peer), "%v", err)
				if !c.failed {
					require.ErrorContains(t, err, "accepting a connection of rank 1")
					require.Zero(t, w.Failures())
					return nil
				}
				require.Equal(t, "world: Broadcast: rank 1 has failed: "+c.why.Error(), err.Error())
				require.Equal(t, 1, peer.Rank)
				require.ErrorIs(t, w.Failure(1), c.why)
				return nil
			})
			if err != nil && !c.failed {
				t.Error(err)
			}
		})
	}
}

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

// A connection that this rank is too short of something to accept is accepted later. Who
// waits hears of it, and may go on waiting.
func TestAcceptedLater(t *testing.T) {
	heard := make(chan struct{})
	_ = Run(t.Context(), 2, func(ctx context.Context, w *World) error {
		if w.rank == 1 {
			<-heard
			return nil
		}
		defer close(heard)
		from := &late{doomed: doomed{why: fmt.Errorf("shm: process 7: %w", verbs.ErrPeerGone)}}
		from.short.Store(true)
		answered := make(chan error)
		go func() { answered <- Broadcast(ctx, w, 1, []int{0}) }()
		w.post.mu.Lock()
		w.post.accept(w.home, 1, from)
		w.post.mu.Unlock()
		err := <-answered
		require.ErrorIs(t, err, verbs.ErrShortage)
		require.ErrorContains(t, err, "rank 1")
		require.Zero(t, w.Failures())
		require.Empty(t, from.rejected)

		go func() { answered <- Broadcast(ctx, w, 1, []int{0}) }()
		for asked := from.asked.Load(); from.asked.Load() < asked+2; {
			w.Poll()
		}
		from.short.Store(false)
		require.ErrorIs(t, <-answered, verbs.ErrPeerGone)
		require.Equal(t, from.why.Error(), from.rejected)
		return nil
	})
}

// lateLink asks for that of a link.
type lateLink struct{ late }

func (*lateLink) Hello() []byte { return hello(laneLink, 1, 0) }

// So is the connection of a link: the rank at its other end is not refused meanwhile.
func TestLinkAcceptedLater(t *testing.T) {
	w := quiet(t)[0]
	from := &lateLink{late{doomed: doomed{why: fmt.Errorf("tcp: 10.0.0.7: %w", verbs.ErrPeerGone)}}}
	from.short.Store(true)
	w.Exclude(func() { w.accept(w.cards[networkCard], from) })
	require.ErrorIs(t, w.shortage.Load().err, verbs.ErrShortage)
	for from.asked.Load() < 3 {
		w.Poll()
	}
	require.Empty(t, from.rejected)
	from.short.Store(false)
	for from.rejected == "" {
		w.Poll()
	}
	require.Equal(t, from.why.Error(), from.rejected)
	require.Zero(t, w.Failures())
	require.Nil(t, w.links[1].Load())
}
