package job

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
)

// Who comes to lead asks a rank that the old leader has told, but whom that reaches only
// after the question: it is answered then.
func TestInquireTooEarly(t *testing.T) {
	inquired := make(chan error, 1)
	runApart(t, 3, func(ctx context.Context, w *World) error {
		var err error
		switch w.rank {
		case 0:
			err = errors.Join(<-inquired, tellAll(ctx, w, 1,
				Message{Kind: kindSurvivor, X: 1}, Message{Kind: kindSurvivor, X: 2}, Message{Kind: kindSurvivors, X: 2}))
		case 2:
			inquired <- tellAll(ctx, w, 1, Message{Kind: kindInquire})
			wait := w.NewWaiter()
			defer wait.Finish()
			for err == nil && decidedBy(w) == nil {
				err = wait.Pause(ctx)
			}
			if n := len(decidedBy(w)); err == nil && n != 2 {
				err = fmt.Errorf("%d survivors were told", n)
			}
		}
		return errors.Join(err, w.Barrier(ctx))
	})
}

// tellAll sends messages to a rank, which has served them when it returns.
func tellAll(ctx context.Context, w *World, rank int, messages ...Message) error {
	l, err := w.Link(rank)
	for i := range messages {
		if err == nil {
			err = l.Tell(&messages[i], nil)
		}
	}
	if err != nil {
		return err
	}
	return l.Flush(ctx)
}

func decidedBy(w *World) []survivor {
	w.engine.Lock()
	defer w.engine.Unlock()
	return w.shrinking.decided
}

// A rank that shrinks abandons a Split that was cut short.
func TestShrinkAbandonsSplit(t *testing.T) {
	done := make(chan struct{})
	runApart(t, 3, func(ctx context.Context, w *World) error {
		if w.rank != 1 {
			<-done
			return nil
		}
		defer close(done)
		ended, end := context.WithCancel(ctx)
		end()
		if _, err := w.Split(ended, 0, 0); !errors.Is(err, context.Canceled) || !w.splitting.begun {
			return fmt.Errorf("error is %w, and Split has begun: %v", err, w.splitting.begun)
		}
		w.Exclude(func() { w.shrinking.decided = []survivor{{0, ""}, {2, ""}} })
		if _, err := w.Shrink(ctx); !errors.Is(err, ErrExcluded) || w.splitting.begun {
			return fmt.Errorf("error is %w, and Split is begun still: %v", err, w.splitting.begun)
		}
		return nil
	})
}

// A rank whose Split has come as far as others need it to, and was cut short then, shrinks. The others have the team, and a call of
// it does not wait for that rank.
func TestShrinkAfterOthersSplit(t *testing.T) {
	t.Parallel()
	ended, end := context.WithCancel(context.Background())
	end()
	for name, options := range forms {
		t.Run(name, func(t *testing.T) {
			begun, made, split := make(chan struct{}), make(chan struct{}), make(chan struct{})
			require.NoError(t, Run(t.Context(), 2, func(ctx context.Context, w *World) error {
				cut := func() error {
					if _, err := w.Split(ended, 0, 0); !errors.Is(err, context.Canceled) {
						return fmt.Errorf("Split is cut short: %w", err)
					}
					return nil
				}
				// They have met, and a Split that has ended at once has sent what it can.
				err := errors.Join(AllGather(ctx, w, make([]int, 1), make([]int, 2)), w.Barrier(ctx))
				if w.rank == 1 {
					err = errors.Join(err, receive(ctx, begun))
					for err == nil && !w.splitting.made {
						err = cut()
					}
					close(made)
					err = errors.Join(err, receive(ctx, split))
				} else {
					err = errors.Join(err, cut())
					close(begun)
					err = errors.Join(err, receive(ctx, made))
					if err != nil {
						return err
					}
					team, failed := w.Split(ctx, 0, 0)
					close(split)
					if failed != nil {
						return failed
					}
					var lost *PeerError
					if err := team.Barrier(ctx); !errors.As(err, &lost) || lost.Rank != 1 || !errors.Is(err, ErrLeft) {
						return fmt.Errorf("error is %w, want that rank 1 has left the team", err)
					}
					err = team.Close()
				}
				if err != nil {
					return err
				}
				small, err := w.Shrink(ctx)
				if err != nil || small.size != 2 {
					return fmt.Errorf("shrunk to %v: %w", small, err)
				}
				return errors.Join(small.Barrier(ctx), small.Close())
			}, options()...))
		})
	}
}

// receive waits until a channel is closed.
func receive(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Ranks shrink because of a failure. A ledger that has both verdicts keeps the failure, from the earlier of both numbers on.
func TestFailureBesideShrink(t *testing.T) {
	failed := func(number uint32) verdict { return verdict{number: number, leaver: 2, text: "it has failed"} }
	shrinks := func(number uint32) verdict { return verdict{number: number, leaver: 1, shrinks: true} }
	left := func(number uint32) verdict { return verdict{number: number, leaver: 0} }
	mismatch := func(number uint32) verdict {
		return verdict{number: number, leaver: -1, text: "they call different things"}
	}
	for _, c := range []struct {
		told []verdict
		want verdict
	}{
		{[]verdict{shrinks(5), failed(8)}, failed(5)},
		{[]verdict{shrinks(5), failed(3)}, failed(3)},
		{[]verdict{failed(8), shrinks(5)}, failed(5)},
		{[]verdict{failed(5), shrinks(8)}, failed(5)},
		{[]verdict{shrinks(5), shrinks(3)}, shrinks(3)},
		{[]verdict{left(8), shrinks(5)}, shrinks(5)},
		{[]verdict{shrinks(5), left(8)}, shrinks(5)},
		{[]verdict{mismatch(8), shrinks(5)}, shrinks(5)},
		{[]verdict{shrinks(5), mismatch(8)}, shrinks(5)},
		{[]verdict{mismatch(5), failed(3)}, failed(3)},
	} {
		var l ledger
		for _, v := range c.told {
			l.judge(v)
		}
		require.Nil(t, l.heard(c.want.number-1), "%+v", c.told)
		require.Equal(t, &c.want, l.heard(c.want.number), "%+v", c.told)
	}
}

// A rank that has heard that another shrinks, and then that a rank has failed, names the one that has failed.
func TestFailureAfterShrink(t *testing.T) {
	for _, told := range []bool{false, true} {
		w := quiet(t)[0]
		require.NoError(t, w.verdict("Barrier", 1))
		w.judged.Store(&verdict{number: 1, leaver: w.rank, shrinks: true})
		require.ErrorContains(t, w.verdict("Barrier", 1), "has called Shrink")
		if told {
			w.ledger.judge(verdict{number: 7, leaver: 1, text: "it has failed"})
			// The ledger has heard of the first verdict before.
			require.ErrorContains(t, w.verdict("Barrier", 7), "rank 1 has failed: it has failed")
		} else {
			w.roster.fail(1, errors.New("it has failed"))
		}
		require.ErrorContains(t, w.verdict("Barrier", 1), "rank 1 has failed: it has failed")
	}
}

// A rank that shrinks because it has seen another fail says so first: a rank that waits for it names the one that has failed.
func TestShrinkAfterFailure(t *testing.T) {
	for name, options := range forms {
		t.Run(name, func(t *testing.T) {
			var heard error
			done := make(chan struct{})
			ctx, cancel := context.WithTimeout(t.Context(), await.Limit)
			defer cancel()
			_ = Run(ctx, 3, func(ctx context.Context, w *World) error {
				err := w.Barrier(ctx)
				switch {
				case w.rank == 0:
					defer close(done)
					// Rank 1 may shrink before this rank has left the Barrier.
					if heard = err; err == nil {
						heard = w.Barrier(ctx)
					}
				case err != nil:
				case w.rank == 1:
					// It passes nothing on before it shrinks.
					w.roster.mu.Lock()
					w.roster.record(2, errors.New("it has failed"))
					w.roster.mu.Unlock()
					short, cut := context.WithCancel(ctx)
					go func() { _ = receive(ctx, done); cut() }()
					_, err = w.Shrink(short)
				default:
					err = receive(ctx, done)
				}
				return err
			}, options()...)
			var failed *PeerError
			require.ErrorAs(t, heard, &failed)
			require.Equal(t, 2, failed.Rank, "%v", heard)
		})
	}
}

// Shrink waits only while its context lasts for what a call that was cut short sends to be received, and another goes on.
func TestShrinkCutWhileSending(t *testing.T) {
	worlds := quiet(t)
	from, to := worlds[0], worlds[1]
	ended, end := context.WithCancel(t.Context())
	end()
	sent := bytes.Repeat([]byte{7}, landingBytes)
	out, in := long(from, 1, sent), long(to, 0, make([]byte, len(sent)))
	land := sendAll(t, from, to, out, in)
	from.round.out, from.round.unfinished = *out, true
	cut := func() {
		_, err := from.Shrink(ended)
		require.ErrorIs(t, err, context.Canceled)
	}
	cut()
	require.Nil(t, from.shrinking.base, "what is sent is not received")
	for from.post.settle(ended, &from.round.out) != nil {
		from.Poll()
		land()
	}
	cut()
	require.NotNil(t, from.shrinking.base, "what is sent is received, and Shrink has not begun")
}

// Shrink and Close wait only while their context lasts for what a team has sent that Split has not given, and the next ones close it.
// Another Split can begin meanwhile, and others hear of a Close that this rank has left.
func TestCutWhileAbandoning(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	for name, call := range map[string]func(w *World) error{
		"Shrink": func(w *World) error { _, err := w.Shrink(ended); return err },
		"Close":  func(w *World) error { return w.CloseContext(ended) },
	} {
		t.Run(name, func(t *testing.T) {
			worlds := quiet(t)
			from, to := worlds[0], worlds[1]
			teams := [2]*World{}
			for i, w := range worlds {
				team, err := w.newTeam(1, []int{0, 1})
				require.NoError(t, err)
				teams[i] = team
			}
			l, err := teams[0].Link(1)
			require.NoError(t, err)
			for l.delivered(ended) != nil {
				to.Poll()
			}
			for range 2 * linkReceives {
				require.NoError(t, l.Tell(&Message{Kind: kindLeft}, make([]byte, from.linkLetter/2)))
			}
			from.splitting = splitting{begun: true, made: true, team: teams[0]}
			require.ErrorIs(t, call(from), context.Canceled)
			require.NotEmpty(t, from.abandoned, "what the team has sent is not received")
			require.Equal(t, splitting{}, from.splitting)
			require.Equal(t, name == "Close", from.left.Load())
			for len(from.abandoned) > 0 {
				_, err := from.abandonSplit(ended)
				require.NoError(t, err)
				to.Poll()
			}
		})
	}
}
