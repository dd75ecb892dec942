package job

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// gated puts off messages until it is open, and notes which it has served of whom.
type gated struct {
	open atomic.Bool
	// waiting counts the messages that are put off, and tries how often one was tried.
	waiting, tries atomic.Int32
	served         [8][]uint64
	// counts are the lengths of served, for other goroutines.
	counts [8]atomic.Int32
}

const (
	noteKind = FirstKind + iota
	gateKind
	askKind

	// hastyKind and wrongKind overtake.
	hastyKind = FirstOvertaking + iota
	wrongKind
)

var errGate = errors.New("the gate was narrow")

func (g *gated) note(from *Link, x uint64) {
	g.served[from.Rank()] = append(g.served[from.Rank()], x)
	g.counts[from.Rank()].Add(1)
}

func (g *gated) Serve(from *Link, m *Message, payload []byte) error {
	switch m.Kind {
	case askKind:
		g.note(from, m.X)
		from.Answer(payload)
	case gateKind:
		g.waiting.Add(1)
		x, refused := m.X, m.A != 0
		from.Later(func() (bool, error) {
			g.tries.Add(1)
			if !g.open.Load() {
				return false, nil
			}
			g.waiting.Add(-1)
			g.note(from, x)
			if refused {
				return true, errGate
			}
			from.Answer(payload)
			return true, nil
		})
	case wrongKind:
		g.note(from, m.X)
		return errGate
	default:
		g.note(from, m.X)
	}
	return nil
}

// until polls until a condition holds.
func until(ctx context.Context, w *World, what string, holds func() bool) error {
	for !holds() {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("rank %d: waiting until %s: %w", w.rank, what, err)
		}
		w.Poll()
		runtime.Gosched()
	}
	return nil
}

const gateService = 7

// behindGate is how many messages are sent behind one that is put off: more than a link
// keeps.
const behindGate = 5 * linkReceives

// What a Service puts off is done in its turn, with what was sent behind it; meanwhile
// others are served, and what this rank asks is answered.
func TestLater(t *testing.T) {
	var service gated
	runApart(t, 3, func(ctx context.Context, w *World) error {
		defer w.Serve(gateService, &service)()
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		body := []func(ctx context.Context, w *World, s *gated) error{sendThroughGate, keepGate, passGate}[w.rank]
		return errors.Join(body(ctx, w, &service), w.Barrier(ctx))
	})
	want := []uint64{100}
	for x := range uint64(behindGate) {
		want = append(want, x)
	}
	require.Equal(t, append(want, 101, 102), service.served[0])
	require.Equal(t, []uint64{201}, service.served[1])
	require.Equal(t, []uint64{200}, service.served[2])
}

// sendThroughGate sends two messages that are put off, and others behind them.
func sendThroughGate(ctx context.Context, w *World, s *gated) error {
	l, err := w.Link(1)
	if err != nil {
		return err
	}
	err = l.Tell(&Message{Kind: gateKind, Service: gateService, X: 100}, nil)
	for x := range uint64(behindGate) {
		if x == 3 {
			// An answer that is behind more than the link keeps does not come through.
			l.Post()
			err = errors.Join(err, until(ctx, w, "rank 1 has asked", func() bool { return s.counts[1].Load() == 1 }))
		}
		err = errors.Join(err, l.Tell(&Message{Kind: noteKind, Service: gateService, X: x}, nil))
	}
	question, answer := []byte("through the gate"), make([]byte, 16)
	err = errors.Join(err, l.Ask(ctx, &Message{Kind: gateKind, Service: gateService, X: 101}, question, answer))
	if err = errors.Join(err, l.Flush(ctx)); err == nil && string(answer) != string(question) {
		err = fmt.Errorf("the answer is %q", answer)
	}
	// What is wrong with a message that was put off is told as ever.
	err = errors.Join(err, l.Tell(&Message{Kind: gateKind, Service: gateService, A: 1, X: 102}, nil))
	var refused *RejectionError
	if e := l.Flush(ctx); !asRefusal(e, &refused) {
		err = errors.Join(err, fmt.Errorf("error is %v, want a refusal", e))
	}
	return err
}

// keepGate opens the gate when rank 2 has passed, and rank 0 has answered.
func keepGate(ctx context.Context, w *World, s *gated) error {
	if err := until(ctx, w, "the first message is put off", func() bool { return s.waiting.Load() == 1 }); err != nil {
		return err
	}
	l, err := w.Link(0)
	if err != nil {
		return err
	}
	answer := make([]byte, 2)
	if err := errors.Join(l.Ask(ctx, &Message{Kind: askKind, Service: gateService, X: 201}, []byte("hi"), answer), l.Flush(ctx)); err != nil {
		return err
	}
	tries := s.tries.Load()
	err = until(ctx, w, "rank 2 has passed", func() bool { return s.counts[2].Load() == 1 && s.tries.Load() > tries })
	if got := s.counts[0].Load(); got != 0 {
		err = errors.Join(err, fmt.Errorf("%d messages were served behind one that was put off", got))
	}
	s.open.Store(true)
	return err
}

// passGate asks rank 1 when it has put off a message of rank 0.
func passGate(ctx context.Context, w *World, s *gated) error {
	if err := until(ctx, w, "the first message is put off", func() bool { return s.waiting.Load() == 1 }); err != nil {
		return err
	}
	l, err := w.Link(1)
	if err != nil {
		return err
	}
	answer := make([]byte, 2)
	return errors.Join(l.Ask(ctx, &Message{Kind: askKind, Service: gateService, X: 200}, []byte("me"), answer), l.Flush(ctx))
}

// A message of a rank that fails while it is put off is not done any more, nor what was
// sent behind it; who is waited for is known to have failed although that came behind.
func TestLaterOfTheDead(t *testing.T) {
	var service gated
	cause := errors.New("enough")
	err := Run(t.Context(), 2, func(ctx context.Context, w *World) error {
		defer w.Serve(gateService, &service)()
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		l, err := w.Link(1 - w.rank)
		if err != nil {
			return err
		}
		if w.rank == 1 {
			if err := until(ctx, w, "rank 0 has failed", func() bool { return w.Failure(0) != nil }); err != nil {
				return err
			}
			service.open.Store(true)
			return until(ctx, w, "nothing waits", func() (none bool) {
				w.Exclude(func() { none = l.unserved.try == nil })
				return none
			})
		}
		err = errors.Join(l.Tell(&Message{Kind: gateKind, Service: gateService, X: 100}, nil),
			l.Tell(&Message{Kind: noteKind, Service: gateService, X: 101}, nil))
		l.Post()
		err = errors.Join(err, until(ctx, w, "the first message is put off", func() bool { return service.waiting.Load() == 1 }))
		return errors.Join(err, cause)
	}, apart()...)
	require.ErrorIs(t, err, cause)
	require.Empty(t, service.served[0])
}

// Ranks meet although each has put off a message of every other, which comes before.
func TestMeetBeforeLater(t *testing.T) {
	// The ranks of an oversubscribed job meet at the root.
	for _, n := range []int{2, 5} {
		for _, cores := range []int{n, 1} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			require.NoError(t, Run(ctx, n, func(ctx context.Context, w *World) error {
				if over := cores < n; w.Oversubscribed() != over || w.rooted != over {
					return fmt.Errorf("%d ranks on %d cores: oversubscribed is %v, and rooted %v", n, cores, w.Oversubscribed(), w.rooted)
				}
				gate := new(gated)
				defer w.Serve(gateService, gate)()
				err := w.Barrier(ctx)
				for rank := range w.size {
					if rank == w.rank {
						continue
					}
					l, failed := w.Link(rank)
					if failed != nil {
						return failed
					}
					err = errors.Join(err, l.Tell(&Message{Kind: gateKind, Service: gateService}, nil))
					l.Post()
				}
				err = errors.Join(err, until(ctx, w, "all is put off", func() bool { return int(gate.waiting.Load()) == n-1 }), w.Barrier(ctx))
				if waiting := int(gate.waiting.Load()); waiting != n-1 {
					err = errors.Join(err, fmt.Errorf("%d messages wait", waiting))
				}
				gate.open.Store(true)
				return errors.Join(err, until(ctx, w, "nothing waits", func() bool { return gate.waiting.Load() == 0 }), w.Barrier(ctx))
			}, append(apart(), func(s *Settings) { s.cores = cores })...))
		}
	}
}

// A message of a kind that overtakes is served before one that is put off, behind that in its
// letter or in another; what is wrong with it is told with the next answer.
func TestOvertaking(t *testing.T) {
	var service gated
	runApart(t, 2, func(ctx context.Context, w *World) error {
		defer w.Serve(gateService, &service)()
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		if w.rank == 1 {
			err := until(ctx, w, "what overtakes has come", func() bool { return service.counts[0].Load() == 3 })
			if service.waiting.Load() != 1 {
				err = errors.Join(err, errors.New("nothing is put off"))
			}
			service.open.Store(true)
			return errors.Join(err, w.Barrier(ctx))
		}
		l, err := w.Link(1)
		if err != nil {
			return err
		}
		tell := func(kind uint8, x uint64) {
			err = errors.Join(err, l.Tell(&Message{Kind: kind, Service: gateService, X: x}, nil))
		}
		tell(gateKind, 100)
		tell(noteKind, 101)
		tell(hastyKind, 1)
		l.Post()
		tell(hastyKind, 2)
		tell(wrongKind, 3)
		var refused *RejectionError
		if e := l.Flush(ctx); !asRefusal(e, &refused) || refused.Text != errGate.Error() {
			err = errors.Join(err, fmt.Errorf("error is %v, want a refusal", e))
		}
		return errors.Join(err, w.Barrier(ctx))
	})
	require.Equal(t, []uint64{1, 2, 3, 100, 101}, service.served[0])
}
