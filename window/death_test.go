package window_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/onesided/rma/epoch"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

const victim = 1

// A death is a rank that is ended while others need it: what the victim does before,
// and the call in which another rank waits for it.
type death struct {
	name string
	// prepare is done by all; rank 0 then calls wait, which needs the victim.
	prepare func(s *script, win *window.Window[int64])
	wait    func(ctx context.Context, s *script, win *window.Window[int64]) error
	// breaks is set if wait succeeds because the lock of the dead rank was broken. leaver is set if it succeeds the
	// same way for a rank that leaves, which still serves the others.
	breaks, leaver bool
	// killed: a rank that leaves would be no hindrance.
	killed bool
}

var deaths = []death{
	{name: "Fence", wait: func(ctx context.Context, s *script, win *window.Window[int64]) error { return win.Fence(ctx) }},
	{name: "Start", wait: func(ctx context.Context, s *script, win *window.Window[int64]) error {
		// Over a link the Complete waits, with more than fits a message.
		if err := win.Start(ctx, groupOf(s, win, victim)); err != nil {
			return err
		}
		return errors.Join(win.Put(make([]int64, deathElements), victim, 0), win.Complete(ctx))
	}},
	{
		name: "Wait",
		prepare: func(s *script, win *window.Window[int64]) {
			if s.World.Rank() == 0 {
				s.OK(win.Post(s.Ctx, groupOf(s, win, victim)))
			}
		},
		wait: func(ctx context.Context, s *script, win *window.Window[int64]) error { return win.Wait(ctx) },
	},
	{
		name: "Test",
		prepare: func(s *script, win *window.Window[int64]) {
			if s.World.Rank() == 0 {
				s.OK(win.Post(s.Ctx, groupOf(s, win, victim)))
			}
		},
		wait: func(_ context.Context, s *script, win *window.Window[int64]) error {
			var err error
			s.Await("the end of the exposure", func() (ended bool) {
				ended, err = win.Test()
				return ended || err != nil
			})
			return err
		},
	},
	{
		name: "Flush", killed: true,
		prepare: lockVictim,
		wait: func(ctx context.Context, s *script, win *window.Window[int64]) error {
			for {
				if err := errors.Join(win.Put([]int64{1}, victim, 0), win.Flush(ctx, victim)); err != nil {
					s.Lost(win.Unlock(ctx, victim), victim)
					return err
				}
			}
		},
	},
	{
		name: "RFlush", killed: true,
		prepare: lockVictim,
		wait: func(ctx context.Context, s *script, win *window.Window[int64]) error {
			for testing := false; ; testing = !testing {
				err := win.Put([]int64{1}, victim, 0)
				r, failed := win.RFlush(victim)
				err = errors.Join(err, failed)
				if testing && err == nil {
					err = awaitRequest(s, r)
				}
				if err = errors.Join(err, r.Wait(ctx)); err != nil {
					s.Lost(win.Unlock(ctx, victim), victim)
					return err
				}
			}
		},
	},
	{
		name: "RFlush under a lock that was not granted", killed: true,
		prepare: func(s *script, win *window.Window[int64]) {
			if s.World.Rank() == victim {
				s.OK(take(s.Ctx, win, window.Exclusive, victim))
			}
		},
		wait: func(ctx context.Context, s *script, win *window.Window[int64]) error {
			if err := errors.Join(win.Lock(ctx, window.Shared, victim), win.Put([]int64{1}, victim, 0)); err != nil {
				return err
			}
			r, err := win.RFlush(victim)
			if err == nil {
				err = awaitRequest(s, r)
			}
			if err != nil {
				s.Lost(win.Unlock(ctx, victim), victim)
			}
			return err
		},
	},
	{
		name: "Unlock", killed: true,
		prepare: lockVictim,
		wait: func(ctx context.Context, s *script, win *window.Window[int64]) error {
			for {
				if err := errors.Join(win.Unlock(ctx, victim), win.Lock(ctx, window.Shared, victim), win.Put([]int64{1}, victim, 0)); err != nil {
					// What is locked is that or nothing.
					if win.Flush(ctx, victim) == nil || !errors.Is(win.Flush(ctx, victim), epoch.ErrNotLocked) {
						s.Lost(win.Unlock(ctx, victim), victim)
					}
					return err
				}
			}
		},
	},
	{
		name: "Complete", killed: true,
		prepare: func(s *script, win *window.Window[int64]) {
			switch s.World.Rank() {
			case 0:
				s.OK(win.Start(s.Ctx, groupOf(s, win, victim)))
				s.OK(win.Put([]int64{1}, victim, 0))
			case victim:
				s.OK(win.Post(s.Ctx, groupOf(s, win, 0)))
			}
		},
		wait: func(ctx context.Context, s *script, win *window.Window[int64]) error {
			awaitFailure(s)
			return win.Complete(ctx)
		},
	},
	{name: "WaitNotify", wait: func(ctx context.Context, s *script, win *window.Window[int64]) error {
		return win.WaitNotify(ctx, 0, 1)
	}},
	{name: "Barrier", wait: func(ctx context.Context, s *script, win *window.Window[int64]) error { return s.World.Barrier(ctx) }},
	{name: "AllGather", wait: func(ctx context.Context, s *script, win *window.Window[int64]) error {
		return world.AllGather(ctx, s.World, make([]int, 1), make([]int, s.World.Size()))
	}},
	{name: "Allocate", wait: func(ctx context.Context, s *script, win *window.Window[int64]) error {
		_, err := window.Allocate[int32](ctx, s.World, 10)
		return err
	}},
	{name: "Create", wait: func(ctx context.Context, s *script, win *window.Window[int64]) error {
		_, err := window.Create(ctx, s.World, make([]int32, 10))
		return err
	}},
	{
		name: "LockAll",
		prepare: func(s *script, win *window.Window[int64]) {
			if s.World.Rank() == victim {
				s.OK(take(s.Ctx, win, window.Exclusive, victim))
			}
		},
		wait: func(ctx context.Context, s *script, win *window.Window[int64]) error {
			if err := win.LockAll(ctx); err != nil {
				return err
			}
			return win.UnlockAll(ctx)
		},
		leaver: true,
	},
	{
		name: "Lock of a window that the dead has locked",
		prepare: func(s *script, win *window.Window[int64]) {
			if s.World.Rank() == victim {
				s.OK(take(s.Ctx, win, window.Exclusive, 2))
			}
		},
		wait: func(ctx context.Context, s *script, win *window.Window[int64]) error {
			return take(ctx, win, window.Exclusive, 2)
		},
		breaks: true,
	},
	{
		name: "exclusive Lock of a window on which the dead has a shared lock",
		prepare: func(s *script, win *window.Window[int64]) {
			if s.World.Rank() == victim {
				s.OK(take(s.Ctx, win, window.Shared, 2))
			}
		},
		wait: func(ctx context.Context, s *script, win *window.Window[int64]) error {
			return take(ctx, win, window.Exclusive, 2)
		},
		breaks: true,
	},
	{
		name: "Lock of the dead's own window",
		prepare: func(s *script, win *window.Window[int64]) {
			if s.World.Rank() == victim {
				s.OK(take(s.Ctx, win, window.Exclusive, victim))
			}
		},
		wait: func(ctx context.Context, s *script, win *window.Window[int64]) error {
			return take(ctx, win, window.Shared, victim)
		},
		leaver: true,
	},
}

// lockVictim has rank 0 lock the victim.
func lockVictim(s *script, win *window.Window[int64]) {
	if s.World.Rank() == 0 {
		s.OK(take(s.Ctx, win, window.Shared, victim))
	}
}

func groupOf[T window.Element](s *script, win *window.Window[T], ranks ...int) window.Group {
	g, err := win.Group(ranks...)
	s.OK(err)
	return g
}

const (
	deathRanks    = 3
	deathElements = 1 << 14
)

func init() {
	for _, d := range deaths {
		register("death in "+d.name, func(s *script) { dying(s, d, false) })
		register("leaving "+d.name, func(s *script) { dying(s, d, true) })
	}
}

// dying is the body of a death. The victim sleeps until it is killed, or leaves.
func dying(s *script, d death, leaves bool) {
	win := allocate[int64](s, deathElements)
	if d.prepare != nil {
		d.prepare(s, win)
	}
	s.OK(s.World.Barrier(s.Ctx))
	jobtest.Signal("ready")
	switch s.World.Rank() {
	case victim:
		if !leaves {
			<-s.Ctx.Done()
		}
		return
	case 0:
		err := d.wait(s.Ctx, s, win)
		switch {
		case leaves && d.leaver:
			s.OK(err)
		case d.breaks:
			s.OK(err)
			s.OK(win.Put([]int64{7}, 2, 0))
			s.OK(win.Unlock(s.Ctx, 2))
		default:
			s.Lost(err, victim)
		}
		// Those that are left can go on with one another, and close.
		s.OK(win.Lock(s.Ctx, window.Exclusive, 2))
		s.OK(win.Put([]int64{42}, 2, 1))
		s.OK(win.Unlock(s.Ctx, 2))
		if leaves {
			return
		}
		// The lock of the dead may have been broken by rank 2, which heard of it first.
		awaitFailure(s)
		s.Lost(win.Lock(s.Ctx, window.Shared, victim), victim)
		s.OK(win.Close())
	default:
		// This rank serves and needs no other. It may learn of the death last, from rank 0.
		awaitWritten(s, win, 1)
		if !leaves {
			s.OK(win.Close())
		}
	}
}

// awaitRequest tests a request until it has ended, and returns with which error.
func awaitRequest(s *script, r window.Request) (err error) {
	s.Await("the end of a request", func() (done bool) {
		done, err = r.Test()
		return done || err != nil
	})
	return err
}

// awaitFailure returns when this rank knows that a rank has failed.
func awaitFailure(s *script) {
	s.Await("a failure to be known", func() bool { return job.Of(s.World).FailureCount() != 0 })
}

// awaitWritten returns when rank 0 has put 42 to an element of rank 2, which is the caller, under a lock.
func awaitWritten(s *script, win *window.Window[int64], element int) {
	s.Await("what rank 0 puts", func() bool {
		s.OK(win.Lock(s.Ctx, window.Shared, 2))
		written := win.Local()[element] == 42
		s.OK(win.Unlock(s.Ctx, 2))
		return written
	})
}

// machines are how the ranks of TestKilled reach each other: by memory, by links, or
// some by the one and some by the other, the victim's by links.
var machines = []struct {
	name        string
	environment func(rank int) []string
}{
	{"shm", func(int) []string { return nil }},
	{"tcp", func(int) []string { return []string{"RMA_DEVICE=tcp"} }},
	{"hosts", func(rank int) []string { return []string{"RMA_DEVICE=", fmt.Sprintf("RMA_HOST=host%d", rank%2)} }},
}

// A process that is killed inside each blocking call, or with a lock in its hands:
// the others go on with an error that names it.
func TestKilled(t *testing.T) {
	busy.Acquire(t)
	for _, turn := range testsize.Turns(0, len(deaths), len(deaths)) {
		d := deaths[turn]
		for _, i := range testsize.Turns(turn, len(machines), 1) {
			m := machines[i]
			t.Run(m.name+"/"+d.name, func(t *testing.T) {
				jobtest.StartWith(t, deathRanks, "death in "+d.name, m.environment).Killed(victim)
			})
		}
	}
}

// A rank that leaves inside an epoch, as goroutine and as process.
func TestLeft(t *testing.T) {
	busy.Acquire(t)
	for _, turn := range testsize.Turns(0, len(deaths), len(deaths)) {
		d := deaths[turn]
		if d.killed || d.name == "WaitNotify" {
			// The third rank might notify yet: see the next test.
			continue
		}
		forms := jobtest.Forms(deathRanks)
		for _, i := range testsize.Turns(turn, len(forms), 1) {
			t.Run(d.name+"/"+forms[i].Name, func(t *testing.T) { forms[i].Run(t, deathRanks, "leaving "+d.name) })
		}
	}
}

func init() {
	register("waiting for a notification of nobody", func(s *script) {
		win := allocate[int64](s, 4)
		if s.World.Rank() != 0 {
			return
		}
		err := win.WaitNotify(s.Ctx, 0, 1)
		var lost *world.PeerError
		s.Check(errors.As(err, &lost), "error is %v, want a *world.PeerError", err)
		s.Check(errors.Is(err, world.ErrLeft), "error is %v, want that a rank has left", err)
	})
}

// A notification can come from any rank, until the last of them has left.
func TestNobodyLeftToNotify(t *testing.T) {
	busy.Acquire(t)
	runInSome(t, 2, "waiting for a notification of nobody", deathRanks)
}

// besideCreated has all use a window of their own memory until rank 1, which is killed, is lost: whatever finds that first says so.
var besideCreated = register("a death beside a window that was created", func(s *script) {
	win, err := window.Create(s.Ctx, s.World, make([]int64, 1000))
	s.OK(err)
	s.OK(win.LockAll(s.Ctx))
	jobtest.Signal("ready")
	if s.World.Rank() == 1 {
		<-s.Ctx.Done()
	}
	some := make([]int64, 10)
	calls := []func() error{
		func() error { return win.Get(some, 1, 0) },
		func() error { return win.Put(some, 1, 0) },
		func() error { return win.Accumulate(window.Sum, some, 1, 0) },
	}
	for i := 0; err == nil; i++ {
		if err = calls[i%len(calls)](); err == nil {
			err = win.Flush(s.Ctx, 1)
		}
	}
	s.Lost(err, 1)
	_ = win.UnlockAll(s.Ctx)
	s.OK(win.Close())
})

func TestKilledBesideCreated(t *testing.T) {
	for range testsize.N(2) {
		jobtest.Start(t, 2, besideCreated).Killed(1)
	}
}
