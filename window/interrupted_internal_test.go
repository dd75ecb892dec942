package window

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/aggregate"
	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/verbs"
)

// A call is interrupted by its own context, whatever the cause of that, and by a shortage of its own process, also where that
// is one of several errors. What ended another rank ends the call for good, though its text is the same. blame does not change
// that.
func TestInterrupted(t *testing.T) {
	failed := errors.New("failed")
	lost := func(cause error) *job.PeerError { return &job.PeerError{Rank: 1, Cause: cause} }
	c := new(core)
	for _, cause := range []error{nil, failed, lost(failed), lost(context.Canceled), verbs.ErrShortage, job.ErrClosed} {
		ended, end := context.WithCancelCause(t.Context())
		end(cause)
		cut := fmt.Errorf("waiting for rank 2: %w", errtext.Ended(ended))
		for _, test := range []struct {
			err              error
			want, afterwards bool
		}{
			{nil, false, false},
			{failed, false, false},
			{cut, true, true},
			{verbs.ErrShortage, true, true},
			{lost(cut), false, false},
			{lost(verbs.ErrShortage), false, false},
			// blame knows one rank: if it is lost, no call can continue.
			{errors.Join(lost(failed), cut), true, false},
			{errors.Join(lost(cut), cut), true, false},
			{errors.Join(errors.Join(lost(cut), failed), errors.Join(lost(cut), verbs.ErrShortage)), true, false},
			{errors.Join(lost(cut), failed), false, false},
			{errors.Join(failed, cut), true, true},
		} {
			require.Equal(t, test.want, interrupted(ended, test.err), "%v", test.err)
			blamed := c.blame("window.Unlock", 1, test.err)
			require.Equal(t, test.afterwards, interrupted(ended, blamed), "%v", blamed)
			require.Equal(t, test.err == nil, blamed == nil)
		}
		require.False(t, interrupted(t.Context(), fmt.Errorf("a call: %w", context.Canceled)))
	}
}

// A message that was not sent keeps a call from ending, unless no rank waits for it any more.
func TestUnsent(t *testing.T) {
	ctx := t.Context()
	other, lost := errors.New("all ranks wait"), &job.PeerError{Rank: 1, Cause: errors.New("failed")}
	require.NoError(t, keepOpenIfUnsent(ctx, nil))
	require.True(t, interrupted(ctx, keepOpenIfUnsent(ctx, other)))
	require.ErrorIs(t, keepOpenIfUnsent(ctx, other), other)
	for _, err := range []error{lost, job.ErrClosed, verbs.ErrShortage} {
		require.Equal(t, err, keepOpenIfUnsent(ctx, err))
	}
}

// Each error is kept once, in order, until it is taken.
func TestKeptErrors(t *testing.T) {
	var k keptErrors
	require.NoError(t, k.take())
	first, second := errors.New("first"), errors.New("second")
	k.add(first)
	k.add(nil)
	require.Equal(t, first, k.take())
	k.add(first)
	k.add(second)
	k.add(errors.New("first"))
	require.EqualError(t, k.take(), "first\nsecond")
	require.NoError(t, k.take())
	k.add(&job.PeerError{Rank: 1, Cause: first})
	k.add(second)
	require.Equal(t, second, k.takeOthers())
	require.NoError(t, k.take())
}

// CountUnlocks has the messages of other ranks counted that give locks of this rank's part back, or withdraw requests. It is
// called before another rank locks this one.
func CountUnlocks[T Element](win *Window[T]) (count func(rank int) int) {
	counter := &unlockCounter{server: win.core.server, counts: make(map[int]int)}
	win.core.world.Serve(win.core.number, counter)
	return counter.of
}

type unlockCounter struct {
	*server
	mu     sync.Mutex
	counts map[int]int
}

func (u *unlockCounter) Serve(from *job.Link, m *job.Message, payload []byte) error {
	if m.Kind == messageUnlock {
		u.mu.Lock()
		u.counts[from.Rank()]++
		u.mu.Unlock()
	}
	return u.server.Serve(from, m, payload)
}

func (u *unlockCounter) of(rank int) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.counts[rank]
}

// Reject queues an operation on a rank that is reached over a link, which the rank rejects.
func Reject[T Element](win *Window[T], rank int) error {
	p, err := win.core.peer(rank)
	if err != nil {
		return err
	}
	o, err := p.deferred.join(aggregate.Accumulate, 8)
	if err != nil {
		return err
	}
	// It is outside of the window, which only the rank looks at here.
	o.Offset, o.Op, o.Element, o.Value[0] = 1<<20, Sum, win.view.kind, 1
	return p.deferred.queued()
}

// Keeps reports whether an interrupted call has kept an error.
func Keeps[T Element](win *Window[T]) bool {
	c := win.core
	return len(c.unlocking.errs)+len(c.completing.errs)+len(c.posting.errs) > 0
}
