package world

import (
	"context"
	"errors"
	"fmt"
	"testing"
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
	w.post.mu.Lock()
	defer w.post.mu.Unlock()
	return w.shrinking.decided
}

// A rank whose Split was cut short hears who survives before it knows by itself that another is gone: it abandons the Split.
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
