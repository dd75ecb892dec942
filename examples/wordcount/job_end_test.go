package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/world"
)

// opened makes a rank that is about to count.
func opened(ctx context.Context, j *job, w *world.World) (*rank, start, error) {
	r := newRank(j, w)
	s, err := r.prepare(ctx)
	if err == nil {
		err = r.open(ctx, s)
	}
	return r, s, err
}

// If the context ends during the count, all ranks end, and rank 0 prints the cause.
func TestInterrupt(t *testing.T) {
	why := errors.New("received SIGINT")
	top := tree(t, randomFiles(200, testsize.Random(t, 16)))
	for _, ranks := range []int32{1, 3} {
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		errout := &recorder{}
		var open atomic.Int32
		j := &job{options: &options{paths: []string{top}}, out: io.Discard, errout: errout}
		err := world.Run(ctx, int(ranks), func(ctx context.Context, w *world.World) error {
			r, s, err := opened(ctx, j, w)
			if err != nil {
				return err
			}
			// evaluate does not run on a rank that is interrupted while it opens.
			if open.Add(1) == ranks {
				cancel(why)
			}
			<-ctx.Done()
			return r.report(ctx, r.evaluate(ctx, s))
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error is %v, want one of the context", err)
		}
		contains(t, errout.String(), "ended before everything was counted: "+why.Error())
	}
}

// A rank dies, and the other ranks name it.
var dying = jobtest.Register("dying", func(ctx context.Context, w *world.World) error {
	errout := &recorder{}
	j := &job{options: &options{paths: []string{ownSource()}}, out: io.Discard, errout: errout}
	if w.Rank() == 1 {
		if _, _, err := opened(ctx, j, w); err != nil {
			return err
		}
		jobtest.Signal("open")
		<-ctx.Done()
		return ctx.Err()
	}
	err := j.run(ctx, w)
	if peer := (*world.PeerError)(nil); !errors.As(err, &peer) || peer.Rank != 1 {
		return fmt.Errorf("error is %v, want a PeerError of rank 1", err)
	}
	if !strings.Contains(errout.String(), "rank 1 has failed") {
		return fmt.Errorf("the rank that died is not named in %q", errout)
	}
	return nil
})

func TestRankDies(t *testing.T) {
	j := jobtest.Start(t, 3, dying)
	j.Await(1, "open")
	j.Kill(1)
	for rank, err := range j.Wait() {
		if err != nil && rank != 1 {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}
