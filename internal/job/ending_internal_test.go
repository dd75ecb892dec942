package job

import (
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/verbs"
)

// connect has a rank make a link that works.
func connect(t *testing.T, w *World, to int) {
	t.Helper()
	l, err := w.Link(to)
	require.NoError(t, err)
	require.NoError(t, l.Tell(&Message{Kind: kindNothing}, nil))
	require.NoError(t, l.Flush(t.Context()))
}

// Rank 1 stops because rank 3 has failed, which rank 2 has told of. Rank 0 finds that its
// connection with rank 1 has ended before it looks at what rank 2 has told, and names rank 3.
func TestEndsAfterWhatHasCome(t *testing.T) {
	for _, c := range []struct {
		name string
		find func(w *World) error
	}{
		{"a link", func(w *World) error {
			for w.FailureCount() == 0 {
				w.Poll()
			}
			return w.lost("Barrier", 1)
		}},
		{"letters", func(w *World) error { return w.post.failed("Barrier", 1, &boxError{1, verbs.ErrPeerGone}) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			worlds := meetWith(t, apart(), "one", "two", "three", "four")
			connect(t, worlds[0], 1)
			connect(t, worlds[0], 2)
			worlds[0].engine.Close()
			worlds[2].roster.fail(3, errors.New("killed"))
			for worlds[2].news.some.Load() {
				worlds[2].Poll()
				runtime.Gosched()
			}
			worlds[2].Exclude(func() {})
			require.NoError(t, worlds[1].depart())

			require.EqualError(t, c.find(worlds[0]), "world: Barrier: rank 3 has failed: killed (told by rank 2)")
			for _, rank := range []int{0, 2, 3} {
				require.NoError(t, worlds[rank].depart())
			}
		})
	}
}

// A rank whose call says that another has failed may exit for that at once: it has told
// of it before.
func TestTellsBeforeItSays(t *testing.T) {
	for _, say := range []func(w *World) error{
		func(w *World) error { return w.anyFailure("Fence") },
		func(w *World) error { return w.peerError("Flush", 2) },
	} {
		worlds := meetWith(t, apart(), "one", "two", "three")
		connect(t, worlds[0], 1)
		worlds[0].engine.Close()
		worlds[0].roster.fail(2, errors.New("killed"))
		require.Error(t, say(worlds[0]))
		require.NoError(t, worlds[0].depart())
		for worlds[1].FailureCount() == 0 {
			worlds[1].Poll()
			runtime.Gosched()
		}
		first, err := worlds[1].FirstFailure()
		require.Equal(t, 2, first, "%v", err)
		for _, w := range worlds[1:] {
			require.NoError(t, w.depart())
		}
	}
}

// What is said to a rank whose link has ended takes nothing that nobody would give back.
func TestRepliesToTheGone(t *testing.T) {
	worlds := meetWith(t, apart(), "one", "two")
	connect(t, worlds[0], 1)
	l := worlds[0].links[1].Load()
	require.NoError(t, worlds[1].depart())
	for l.broken.Load() == nil {
		worlds[0].Poll()
		runtime.Gosched()
	}
	worlds[0].Exclude(worlds[0].closeFallen)
	l.Reply(&Message{Kind: kindNothing}, make([]byte, 2*shortLetter))
	require.Empty(t, l.held)
	require.Empty(t, l.requests)
	require.NoError(t, worlds[0].depart())
}
