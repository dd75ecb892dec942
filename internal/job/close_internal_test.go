package job

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/verbs"
)

// ended is a context that has ended.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// A client waits for the server to end the line of the session only while its context lasts, and goes on with that later.
func TestHangUpContext(t *testing.T) {
	worlds := quiet(t, WithPeerTimeout(2*await.Limit))
	near, far := net.Pipe()
	w := worlds[1]
	s := &Session{world: w, conn: near}
	w.session = s
	defer func() { w.session = nil }()
	ctx, cancel := context.WithCancel(t.Context())
	hungUp := make(chan error, 1)
	go func() { hungUp <- s.hangUp(ctx) }()
	await.Parked(t, "job.(*Session).hangUp", 1)
	cancel()
	err := await.Receive(t, "the client to have had enough", hungUp)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "rank 0 has not ended the session")
	go func() { hungUp <- s.hangUp(t.Context()) }()
	await.Parked(t, "job.(*Session).hangUp", 1)
	require.NoError(t, far.Close())
	require.NoError(t, await.Receive(t, "the client to hear the end of the line", hungUp))
	_, err = near.Write([]byte{1})
	require.ErrorIs(t, err, io.ErrClosedPipe)
}

// To give up a team of which this rank has only its own part ends with the context, too, though a rank does not take what was sent to it.
// Another Close goes on with that.
func TestAbandonContext(t *testing.T) {
	s, err := newSettings(apart())
	require.NoError(t, err)
	job, err := localWorlds(t.Context(), 2, s)
	require.NoError(t, err)
	teams := split(t, job)
	for _, w := range job {
		w.engine.Close()
	}
	l, err := teams[0].Link(1)
	require.NoError(t, err)
	require.NoError(t, l.Tell(&Message{Kind: kindNothing}, nil))
	teams[0].partial.Store(true)
	closed := make(chan error, 1)
	go func() { closed <- teams[0].CloseContext(ended()) }()
	err = await.Receive(t, "the first Close to be cut short", closed)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "rank 1")
	go func() { closed <- teams[0].Close() }()
	require.NoError(t, until(t.Context(), job[1], "rank 0 has left the team", func() bool { return len(closed) > 0 }))
	require.NoError(t, <-closed)
	require.Empty(t, job[0].teams())
	for _, w := range job {
		require.NoError(t, w.depart())
	}
}

// A Close that waits for the answer of a process that was never met ends with its context, and names that. It makes no difference
// whether this rank has asked before.
func TestCloseBesideAStranger(t *testing.T) {
	for name, asked := range map[string]bool{"asked": true, "not asked": false} {
		t.Run(name, func(t *testing.T) {
			besideStranger(t, func(ctx context.Context, w *World) error {
				m := &slowMapper{Mapper: w.home.mapper, answer: make(chan struct{})}
				defer mapBy(w, m)()
				defer close(m.answer)
				if asked && w.Acquainted(1) {
					return errors.New("acquainted without an answer")
				}
				closed := make(chan error, 1)
				go func() { closed <- w.CloseContext(ended()) }()
				err := await.Receive(t, "the Close to be cut short", closed)
				if !errors.Is(err, context.Canceled) {
					t.Errorf("error is %v", err)
				} else {
					require.ErrorContains(t, err, "rank 1, which this one has not met yet, does not answer")
				}
				return nil
			})
		})
	}
}

// A logger that blocks delays neither the goroutine that logs, which may hold the mutex of progress, nor Close.
func TestLoggerHoldsUpNoClose(t *testing.T) {
	for name, logs := range map[string]func(w *World){
		"a report of a stall": func(w *World) {
			wait := w.NewWaiter()
			keptOf(wait.Sleeper()).call = &waitingCall{name: "world.Barrier"}
			w.reportStall(wait.Sleeper(), []int{w.rank})
		},
		"no connection for now": func(w *World) { w.lack(1, verbs.ErrShortage) },
		"a connection is not accepted": func(w *World) {
			w.Exclude(func() { w.accept(w.cards[networkCard], &caller{hello: hello(laneLink, 1, 0)}) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			called, release := make(chan string, 1), make(chan struct{})
			t.Cleanup(func() { close(release) })
			s, err := newSettings(append(apart(), WithLogger(slog.New(slog.NewTextHandler(writer(func(line []byte) {
				called <- string(line)
				<-release
			}), nil)))))
			require.NoError(t, err)
			worlds, err := localWorlds(t.Context(), 2, s)
			require.NoError(t, err)
			for _, w := range worlds {
				w.engine.Close()
			}
			logged, departed := make(chan struct{}, 1), make(chan error, 1)
			go func() {
				logs(worlds[0])
				logged <- struct{}{}
			}()
			require.Contains(t, await.Receive(t, "the logger to be called", called), "level=WARN")
			await.Receive(t, "the goroutine that logs to go on", logged)
			go func() { departed <- worlds[0].depart() }()
			require.NoError(t, await.Receive(t, "the World to end", departed))
			require.NoError(t, worlds[1].depart())
		})
	}
}

// What a World logs has reached the logger when its Close returns: a program may end then.
func TestCloseHandsOverToLogger(t *testing.T) {
	var worlds []*World
	var text strings.Builder
	logger := slog.New(slog.NewTextHandler(writer(func(line []byte) {
		// depart has nothing else to do then.
		assert.NoError(t, await.Until(t.Context(), "the World to depart", worlds[0].departing.Load))
		text.Write(line)
	}), nil))
	s, err := newSettings(append(apart(), WithLogger(logger)))
	require.NoError(t, err)
	worlds, err = localWorlds(t.Context(), 2, s)
	require.NoError(t, err)
	for rank := range 3 {
		worlds[0].lack(rank, verbs.ErrShortage)
	}
	for _, w := range worlds {
		require.NoError(t, w.depart())
	}
	require.Equal(t, 3, strings.Count(text.String(), "cannot connect"), text.String())
}

// A report whose questions are not answered holds up no Close: that does not wait for it before it leaves, and ends it with the World.
func TestReportHoldsUpNoClose(t *testing.T) {
	s, err := newSettings(append(apart(), WithLogger(nil)))
	require.NoError(t, err)
	worlds, err := localWorlds(t.Context(), 2, s)
	require.NoError(t, err)
	for _, w := range worlds {
		w.engine.Close()
	}
	w := worlds[0]
	wait := w.NewWaiter()
	keptOf(wait.Sleeper()).call = &waitingCall{name: "world.Barrier"}
	w.reportStall(wait.Sleeper(), []int{1})
	require.NoError(t, w.aside.waitIn(ended()))
	states := make(chan []string, 1)
	w.reports.start(func(ctx context.Context) {
		states <- w.statesOf(&within{ctx, w, w.Now() + 2*await.Limit, true}, []int{1})
	})
	await.Parked(t, "job.(*World).statesOf", 1)
	departed := make(chan error, 1)
	go func() { departed <- w.depart() }()
	require.NoError(t, await.Receive(t, "the World to end", departed))
	require.Equal(t, []string{"had not answered when this rank closed its World"}, <-states)
	require.NoError(t, worlds[1].depart())
}

// The event of a client's Close comes when the server has ended the session. A Close that its context ends while it waits for that
// has one, too.
func TestHookAfterHangUp(t *testing.T) {
	patient := WithPeerTimeout(2 * await.Limit)
	l, err := Listen(t.Context(), "127.0.0.1:0", WithoutKey(), patient)
	require.NoError(t, err)
	stays, closed := make(chan struct{}), make(chan error, 2)
	go func() {
		s, err := l.Accept(t.Context())
		if err != nil {
			closed <- err
			return
		}
		// The client has left, but the server does not end the line. It takes and confirms messages until finalize has returned, so that
		// the client waits for nothing else.
		w := s.World()
		w.finalize = func(ctx context.Context) error {
			<-stays
			return s.meet(ctx)
		}
		err = s.Begin()
		<-s.Left()
		closed <- errors.Join(err, s.World().Close())
	}()
	var events []time.Duration
	client, err := Dial(t.Context(), l.Addr().String(), WithoutKey(), patient, WithHook(func(e *Event) { events = append(events, e.Ended) }))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cut := make(chan error, 1)
	go func() { cut <- client.CloseContext(ctx) }()
	await.Parked(t, "job.(*Session).hangUp", 1)
	waits := client.Now()
	cancel()
	require.ErrorIs(t, await.Receive(t, "the client to have had enough", cut), context.Canceled)
	require.Len(t, events, 1)
	require.Greater(t, events[0], waits)
	close(stays)
	require.NoError(t, errors.Join(client.Close(), await.Receive(t, "the server to end the session", closed), l.Close()))
	require.Len(t, events, 2)
}
