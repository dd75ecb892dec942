package job

import (
	"context"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/simtest"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/internal/tuning"
)

// counting is a Service that checks the order of what comes, and answers questions.
type counting struct {
	next map[int]uint64
	bad  error
}

func (c *counting) Serve(from *Link, m *Message, payload []byte) error {
	if m.X != c.next[from.Rank()] && c.bad == nil {
		c.bad = fmt.Errorf("message %d of rank %d, %d is next", m.X, from.Rank(), c.next[from.Rank()])
	}
	for i, b := range payload {
		if b != byte(m.X)+byte(i) && c.bad == nil {
			c.bad = fmt.Errorf("byte %d of message %d of rank %d is %d", i, m.X, from.Rank(), b)
		}
	}
	c.next[from.Rank()] = m.X + 1
	if m.X%4 == 0 {
		var text [8]byte
		binary.LittleEndian.PutUint64(text[:], m.X)
		from.Answer(text[:])
	}
	return nil
}

// talk has all ranks tell all others messages of many lengths, and ask now and then. It gives what a
// question there and back has taken rank 0 at last.
func talk(t *testing.T, profile string, ranks, messages int, rings bool) (took time.Duration, looked int) {
	s := simtest.New(t, profile, 1)
	require.NoError(t, Simulate(t.Context(), s, ranks, func(ctx context.Context, w *World) error {
		c := &counting{next: make(map[int]uint64)}
		number := w.NewNumber()
		stop := w.Serve(number, c)
		defer stop()
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		payload := make([]byte, 4096)
		for i := range messages {
			for rank := range ranks {
				if rank == w.Rank() {
					continue
				}
				l, err := w.Link(rank)
				if err != nil {
					return err
				}
				n := i * 37 % 300
				if i%11 == 0 {
					n = i * 101 % 4000
				}
				for k := range n {
					payload[k] = byte(i) + byte(k)
				}
				m := Message{Kind: FirstKind, Service: number, X: uint64(i)}
				if i%4 != 0 {
					if err := l.Tell(&m, payload[:n]); err != nil {
						return err
					}
					continue
				}
				var answer [8]byte
				begun := w.Now()
				if err := l.Ask(ctx, &m, payload[:n], answer[:]); err != nil {
					return err
				}
				if err := l.Flush(ctx); err != nil {
					return err
				}
				if w.Rank() == 0 && n < 200 {
					took = w.Now() - begun
				}
				if got := binary.LittleEndian.Uint64(answer[:]); got != uint64(i) {
					return fmt.Errorf("%d was answered by %d", i, got)
				}
			}
		}
		for rank := range ranks {
			if rank == w.Rank() {
				continue
			}
			l, err := w.Link(rank)
			if err == nil {
				err = l.Flush(ctx)
			}
			if err != nil {
				return err
			}
		}
		if r := w.cards[networkCard].rings; r != nil {
			looked = max(looked, r.set.Len())
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		for rank, next := range c.next {
			if next != uint64(messages) {
				return fmt.Errorf("%d messages of rank %d", next, rank)
			}
		}
		return c.bad
	}, Tune(func(t *tuning.Tuning) {
		if t.Rings = tuning.RingsNever; rings {
			t.Rings = tuning.RingsAlways
		}
	})))
	return took, looked
}

// Messages come once, in order, whether by ring or not.
func TestRings(t *testing.T) {
	// A ring is there only after its offer has gone round.
	messages := max(200, testsize.N(200))
	for _, profile := range []string{"infinihost-2003", "ndr-2024"} {
		for _, ranks := range []int{2, 5} {
			without, none := talk(t, profile, ranks, messages, false)
			with, looked := talk(t, profile, ranks, messages, true)
			t.Logf("%s, %d ranks: %v by letters, %v with %d rings", profile, ranks, without, with, looked)
			require.Zero(t, none)
			require.Positive(t, looked)
		}
	}
}
