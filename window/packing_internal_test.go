package window

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/hint"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/scheduler"
	"github.com/onesided/rma/world"
)

// putInParts puts more than the packets hold that may be on their way, by calls that are cut
// short where there is no room: each goes on where the one before it ended.
var putInParts = jobtest.Register("a put in parts", func(ctx context.Context, w *world.World) error {
	const count = 1 << 20
	win, err := Allocate[int64](ctx, w, count, hint.Without(scheduler.Adapt|scheduler.Early))
	if err != nil {
		return err
	}
	if w.Rank() == 0 {
		err = errors.Join(win.Lock(ctx, Exclusive, 1), win.Flush(ctx, 1), sendInParts(w, win, count), win.Unlock(ctx, 1))
	}
	err = errors.Join(err, w.Barrier(ctx))
	for i, got := range win.Local() {
		if w.Rank() == 1 && got != int64(i) {
			return errors.Join(err, fmt.Errorf("element %d is %d", i, got))
		}
	}
	return errors.Join(err, win.Close())
})

func sendInParts(w *world.World, win *Window[int64], count int) error {
	p, err := win.core.peer(1)
	if err != nil {
		return err
	}
	d := p.deferred
	packAlways(d)
	values := make([]int64, count)
	for i := range values {
		values[i] = int64(i)
	}
	if err := win.Put(values, 1, 0); err != nil {
		return err
	}
	return startInParts(w, d)
}

// packAlways has all operations go in messages.
func packAlways(d *deferred) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.planner = *scheduler.NewPlanner(scheduler.Conditions{Costs: d.link.Costs(), Scheme: d.scheme, Packet: d.link.MaxPayload()})
}

// startInParts has what is queued leave, by calls in which nothing makes room.
func startInParts(w *world.World, d *deferred) (err error) {
	for until := time.Now().Add(await.Limit); time.Now().Before(until); {
		job.Of(w).Exclude(func() { err = d.start(noWait, scheduler.Nothing) })
		if !errors.Is(err, context.Canceled) {
			return err
		}
		for range 100 {
			job.Of(w).Poll()
		}
	}
	return fmt.Errorf("what is queued has not left in %v: %w", await.Limit, err)
}

func TestPutInParts(t *testing.T) { jobtest.Apart(t, 2, putInParts) }

// runsInParts puts and accumulates more than the packets hold that may be on their way, by calls that are cut short,
// some within a run of accumulates. After each of them another is called.
var runsInParts = jobtest.Register("runs in parts", func(ctx context.Context, w *world.World) error {
	const count, rounds = 16_000, 100
	win, err := Allocate[int32](ctx, w, 2*count, hint.Without(scheduler.Adapt|scheduler.Early))
	if err != nil {
		return err
	}
	more := []int32{0}
	if w.Rank() == 0 {
		err = errors.Join(win.Lock(ctx, Exclusive, 1), win.Flush(ctx, 1))
		if err == nil {
			more[0], err = accumulateInParts(w, win, count, rounds)
		}
		err = errors.Join(err, win.Unlock(ctx, 1))
	}
	err = errors.Join(err, world.Broadcast(ctx, w, 0, more))
	for i, got := range win.Local() {
		want := int32(i * rounds)
		if i >= count {
			want = int32(i)
		} else if i == 1 {
			want += more[0]
		}
		if w.Rank() == 1 && got != want {
			return errors.Join(err, fmt.Errorf("element %d is %d, should be %d", i, got, want))
		}
	}
	return errors.Join(err, win.Close())
})

// accumulateInParts adds i to element i in each round, and tells what it has added to element 1 beside.
func accumulateInParts(w *world.World, win *Window[int32], count, rounds int) (more int32, err error) {
	p, err := win.core.peer(1)
	if err != nil {
		return 0, err
	}
	d := p.deferred
	packAlways(d)
	values := make([]int32, count)
	for i := range values {
		values[i] = int32(count + i)
	}
	round := func() error {
		if err := win.Put(values, 1, count); err != nil {
			return err
		}
		for i := range int32(count) {
			if err := win.Accumulate(Sum, []int32{i}, 1, int(i)); err != nil {
				return err
			}
		}
		return d.start(noWait, scheduler.Nothing)
	}
	cuts := 0
	for n := 0; n < rounds; {
		job.Of(w).Exclude(func() {
			for err = nil; err == nil && n < rounds; n++ {
				err = round()
			}
		})
		if errors.Is(err, context.Canceled) {
			if d.packed > 0 && d.queue.Operations[d.plan.Steps[d.step].First].Run > 0 {
				cuts++
			}
			more++
			err = errors.Join(win.Accumulate(Sum, []int32{1}, 1, 1), startInParts(w, d))
		}
		if err != nil {
			return more, err
		}
	}
	if got, want := win.Stats().Packed.Accumulates, uint64(count*rounds)+uint64(more); got != want {
		return more, fmt.Errorf("%d accumulates are counted, %d were called", got, want)
	}
	if cuts == 0 {
		return more, errors.New("no call was cut short within a run")
	}
	return more, nil
}

func TestRunsInParts(t *testing.T) { jobtest.Apart(t, 2, runsInParts) }
