package job

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/verbs"
)

// Two ranks that connect to each other at once have one link between them, whichever of
// them looks first, and what both sent before comes.
func TestOneLink(t *testing.T) {
	for _, c := range []struct {
		name  string
		looks [2]int
	}{
		{"the lower rank looks first", [2]int{0, 1}},
		{"the higher rank looks first", [2]int{1, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			worlds := quiet(t)
			var services [2]echo
			var links [2]*Link
			for rank, w := range worlds {
				defer w.Serve(7, &services[rank])()
				l, err := w.Link(1 - rank)
				require.NoError(t, err)
				require.NoError(t, l.Tell(&Message{Kind: FirstKind + 1, Service: 7, X: 5}, nil))
				l.Push()
				links[rank] = l
			}
			for services[0].told.Load()+services[1].told.Load() < 10 {
				for _, rank := range c.looks {
					for worlds[rank].Poll() > 0 {
					}
					require.NoError(t, links[rank].fault())
				}
				runtime.Gosched()
			}
			for rank, l := range links {
				require.Len(t, worlds[rank].cards[networkCard].links, 1)
				require.Nil(t, l.crossing)
				require.Same(t, l, worlds[rank].links[1-rank].Load())
			}
		})
	}
}

// The connection in whose place a link takes the other's is given up when the other has
// refused it, and not lost to it before.
func TestSuperseded(t *testing.T) {
	worlds := quiet(t)
	lower, err := worlds[0].Link(1)
	require.NoError(t, err)
	higher, err := worlds[1].Link(0)
	require.NoError(t, err)
	for !higher.up {
		worlds[1].Poll()
	}
	before := higher.superseded
	require.NotNil(t, before)
	for higher.superseded != nil {
		worlds[0].Poll()
		worlds[1].Poll()
	}
	require.ErrorIs(t, before.Err(), verbs.ErrRejected)
	require.True(t, lower.up)
	require.NoError(t, errors.Join(lower.fault(), higher.fault()))
	require.Empty(t, append(worlds[0].dialing, worlds[1].dialing...))
}

// Once the other side of a link that this rank has made may have begun to connect before it
// heard of that; nobody is warned of it. Who comes again is another.
func TestCrossingLate(t *testing.T) {
	var log recorder
	worlds := quiet(t, WithLogger(log.logger()))
	lower, err := worlds[0].Link(1)
	require.NoError(t, err)
	for !lower.up {
		worlds[0].Poll()
		worlds[1].Poll()
	}
	first, second := &caller{hello: hello(laneLink, 1, 0)}, &caller{hello: hello(laneLink, 1, 0)}
	worlds[0].Exclude(func() { worlds[0].accept(lower.card, first) })
	require.True(t, first.rejected)
	worlds[0].Exclude(func() { worlds[0].accept(lower.card, second) })
	require.True(t, second.rejected)
	await.True(t, "the warning of the second", func() bool { return len(log.lines("another process says that it is rank 1, too")) > 0 })
	// A warning of the first would have come before.
	require.Len(t, log.lines(""), 1)
}

// Who is connected to by a rank that it connects to, and which then cannot be connected to,
// tells it so.
func TestCrossingRefused(t *testing.T) {
	w := quiet(t)[0]
	l, err := w.Link(1)
	require.NoError(t, err)
	first, second := &caller{hello: hello(laneLink, 1, 0)}, &caller{hello: hello(laneLink, 1, 0)}
	w.Exclude(func() {
		w.accept(l.card, first)
		w.accept(l.card, second)
	})
	require.False(t, first.rejected)
	require.True(t, second.rejected)
	l.fail(errors.New("cut off"))
	w.Exclude(w.closeFallen)
	require.True(t, first.rejected)
	require.False(t, first.accepted)
	require.Error(t, w.Barrier(context.Background()))
}

// A rank has no link with itself: there is one between two ranks.
func TestNoLinkWithItself(t *testing.T) {
	w := quiet(t)[0]
	_, err := w.Link(0)
	require.ErrorIs(t, err, ErrArgument)
	require.ErrorContains(t, err, "a link of rank 0 with itself")
}
