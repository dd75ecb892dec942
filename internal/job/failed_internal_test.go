package job

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

// A rank that is known to have failed does nothing more to Services, though its messages
// had come before that was known: others may have had what it held.
func TestFailedIsNotServed(t *testing.T) {
	var service echo
	serving, told, failed := make(chan struct{}), make(chan error, 2), make(chan struct{})
	err := Run(t.Context(), 2, func(ctx context.Context, w *World) error {
		if w.rank == 1 {
			<-serving
			l, err := w.Link(0)
			if err != nil {
				return err
			}
			tell := func() error { return l.Tell(&Message{Kind: FirstKind + 1, Service: 7, X: 1}, nil) }
			told <- errors.Join(tell(), l.Flush(ctx))
			<-failed
			err = tell()
			// Of its own the World serves what comes behind.
			l.Reply(&Message{Kind: kindLeft}, nil)
			told <- err
			<-failed
			return nil
		}
		defer w.Serve(7, &service)()
		// Rank 1 waits for nothing if this one returns early.
		defer close(failed)
		close(serving)
		w.KeepProgress()
		if err := <-told; err != nil {
			return err
		}
		w.engine.Lock()
		failed <- struct{}{}
		err := <-told
		w.roster.fail(1, errors.New("this test says so"))
		w.engine.Unlock()
		for !w.parted[1].Load() {
			w.Poll()
		}
		failed <- struct{}{}
		if n := service.told.Load(); n != 1 {
			err = errors.Join(err, fmt.Errorf("%d messages were served, not the one from before the failure", n))
		}
		return err
	}, apart()...)
	if err != nil {
		t.Error(err)
	}
}
