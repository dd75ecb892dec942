package job

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// fussy refuses all that it is told, with a text of its own.
type fussy struct{ text string }

func (f fussy) Serve(from *Link, m *Message, payload []byte) error {
	err := errors.New(f.text)
	if m.Kind == askKind {
		from.Complain(m.Service, err)
		from.Answer(payload)
		return nil
	}
	return err
}

// What is refused of the messages to a Service is told to who flushes for that one, whoever
// flushes first, and once.
func TestRefusedByService(t *testing.T) {
	const first, second = 7, 8
	runApart(t, 2, func(ctx context.Context, w *World) error {
		if w.rank == 1 {
			defer w.Serve(first, fussy{"the first"})()
			defer w.Serve(second, fussy{"the second"})()
			return errors.Join(w.Barrier(ctx), w.Barrier(ctx))
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		l, err := w.Link(1)
		if err != nil {
			return err
		}
		hears := func(what string, err error, text string) error {
			var refused *RejectionError
			if text == "" && err == nil || asRefusal(err, &refused) && refused.Text == text {
				return nil
			}
			return fmt.Errorf("%s tells %v, want %q", what, err, text)
		}
		for _, way := range []struct {
			name string
			send func(service uint32) error
		}{
			{"told", func(service uint32) error { return l.Tell(&Message{Kind: noteKind, Service: service}, nil) }},
			{"asked", func(service uint32) error {
				return l.Ask(ctx, &Message{Kind: noteKind, Service: service}, nil, nil)
			}},
			{"answered with a complaint", func(service uint32) error {
				return l.Ask(ctx, &Message{Kind: askKind, Service: service}, []byte("hi"), make([]byte, 2))
			}},
		} {
			err = errors.Join(err, way.send(first), way.send(first), way.send(second),
				hears(way.name+": a flush for another", l.Flush(ctx, 9), ""),
				hears(way.name+": a flush for the second", l.Flush(ctx, second), "the second"),
				hears(way.name+": another for it", l.Flush(ctx, second), ""),
				hears(way.name+": a settling of the first", l.Settle(ctx, first), "the first"),
				hears(way.name+": a flush for any", l.Flush(ctx), ""),
				way.send(second),
				hears(way.name+": a flush for any that was refused", l.Flush(ctx), "the second"))
		}
		return errors.Join(err, w.Barrier(ctx))
	})
}

// Of refusals that nobody takes the oldest are forgotten.
func TestUntakenRefusals(t *testing.T) {
	var r refusals
	for service := range uint32(3 * mostRefusals) {
		r.note(service, 1, fmt.Errorf("refusal of %d", service))
		r.note(service, 1, errors.New("the second of its service"))
	}
	require.Len(t, r, mostRefusals)
	require.NoError(t, r.take([]uint32{2*mostRefusals - 1}, asked(1)))
	require.NoError(t, r.take([]uint32{3*mostRefusals - 1}, asked(0)))
	require.EqualError(t, r.take([]uint32{3*mostRefusals - 1}, asked(1)), fmt.Sprintf("refusal of %d", 3*mostRefusals-1))
	require.EqualError(t, r.take(nil, asked(1)), fmt.Sprintf("refusal of %d", 2*mostRefusals))
	require.Empty(t, r)
}

// A Service that refuses much takes no place of its own first refusal, nor of another's.
func TestSparedRefusals(t *testing.T) {
	var r refusals
	r.note(8, 1, errors.New("the only of 8"))
	for before := range uint64(3 * mostRefusals) {
		r.note(7, before, fmt.Errorf("of 7, before %d", before))
	}
	require.Len(t, r, mostRefusals)
	require.EqualError(t, r.take([]uint32{7}, asked(3*mostRefusals)), "of 7, before 0")
	require.EqualError(t, r.take([]uint32{8}, asked(1)), "the only of 8")
}

// What a Service has refused by a grant is of what came before that, and of no grant or question before.
func TestRefusalsBeforeGrant(t *testing.T) {
	var r refusals
	of7 := []uint32{7}
	r.note(7, 5, errors.New("of 7"))
	r.note(8, 5, errors.New("of 8"))
	r.granted(7, math.MaxUint32)
	r.note(7, 5, errors.New("of 7, later"))
	require.NoError(t, r.take(of7, GrantMark(math.MaxUint32-1)))
	require.EqualError(t, r.take(of7, GrantMark(math.MaxUint32)), "of 7")
	require.NoError(t, r.take(of7, GrantMark(1)))
	r.granted(7, 1)
	require.NoError(t, r.take(of7, GrantMark(math.MaxUint32)))
	require.NoError(t, r.take(of7, asked(4)))
	require.EqualError(t, r.take(of7, GrantMark(1)), "of 7, later")
	require.EqualError(t, r.take([]uint32{8}, Mark{}), "of 8")
}

// asked is the mark of a question.
func asked(number uint64) Mark { return Mark{asked: number, strict: true} }

// Of flushes that are begun one behind another each tells what was refused before it, whichever is waited for first.
func TestRefusalsOfMarks(t *testing.T) {
	worlds := quiet(t)
	defer worlds[1].Serve(7, fussy{"no"})()
	defer worlds[1].Serve(8, new(echo))()
	l, err := worlds[0].Link(1)
	require.NoError(t, err)
	push := func(service uint32) Mark {
		require.NoError(t, l.Tell(&Message{Kind: FirstKind + 1, Service: service, X: 1}, nil))
		m, ok := l.Push()
		require.True(t, ok)
		return m
	}
	reached := func(m Mark) (err error) {
		for done := false; !done; runtime.Gosched() {
			for _, w := range worlds {
				w.Poll()
			}
			done, err = l.Reached(m, 7)
		}
		return err
	}
	for _, lastFirst := range []bool{false, true} {
		fine, refused, again, behind := push(8), push(7), push(7), push(8)
		if lastFirst {
			require.Error(t, reached(behind), "what was not told yet")
			require.NoError(t, reached(again))
			require.NoError(t, reached(refused))
		} else {
			require.NoError(t, reached(fine))
			require.Error(t, reached(refused))
			require.Error(t, reached(again))
			require.NoError(t, reached(behind))
		}
	}
}
