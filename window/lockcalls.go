package window

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/onesided/rma/epoch"
	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/scheduler"
)

// A LockKind is the kind of a lock, [Shared] or [Exclusive].
type LockKind = epoch.LockKind

// The kinds of locks.
const (
	// Shared locks of several origins may be held at the same time.
	Shared = epoch.Shared
	// Exclusive locks exclude every other lock of the target.
	Exclusive = epoch.Exclusive
)

// Lock opens an access epoch to target, whose program takes no part. Conflicting locks exclude each other. The locks of
// ranks that have failed or left are broken. If Lock returns an error, no epoch is open.
//
// If target shares no memory with this rank, Lock may return before this rank holds the lock, as in MPI. The lock
// request travels with the first operations of the epoch, which are always done under the lock. The lock is held when
// the first Flush of the epoch has returned, or Wait of a request of an operation with elements. The next Lock, LockNow or
// LockAll of this rank on a window of the same World first acquires the lock that is still pending: locks of the windows
// of one World are acquired in the order of the calls.
//
// An epoch without operations may end without the lock. To protect anything but the operations of the epoch, such as a
// file or loads of mapped memory, use [Window.LockNow].
func (w *Window[T]) Lock(ctx context.Context, kind LockKind, target int) error {
	return w.calls().Lock(ctx, kind, target)
}

func (w *untyped) Lock(ctx context.Context, kind LockKind, target int) error {
	return w.core.beginLock(ctx, "Lock", kind, target, false)
}

// LockNow opens the epoch of [Window.Lock], and returns when this rank holds the lock. If ctx ends first, no epoch is open
// and the request is withdrawn. If target shares no memory with this rank, LockNow takes at least a round trip; Lock takes
// none by itself.
func (w *Window[T]) LockNow(ctx context.Context, kind LockKind, target int) error {
	return w.calls().LockNow(ctx, kind, target)
}

func (w *untyped) LockNow(ctx context.Context, kind LockKind, target int) error {
	return w.core.beginLock(ctx, "LockNow", kind, target, true)
}

// beginLock is Lock, or LockNow if now is set.
func (c *core) beginLock(ctx context.Context, name string, kind LockKind, target int, now bool) error {
	if err := c.check(ctx, name); err != nil {
		return err
	}
	if c.remote {
		defer c.endSpan(name, c.world.BeginSpan())
	}
	if err := c.checkRank(name, target); err != nil {
		return err
	}
	if c.visited != nil && target == c.rank {
		return fmt.Errorf("window: %s of rank %d: %w", name, target, ErrAttached)
	}
	if c.hints.ReadOnly && kind == Exclusive {
		return fmt.Errorf("window: %s of rank %d: %w", name, target, ErrReadOnly)
	}
	c.mu.Lock()
	err := c.epochs.BeginLock(kind, target)
	c.mu.Unlock()
	if err != nil {
		var illegal *epoch.CallError
		if errors.As(err, &illegal) {
			illegal.Call = name + strings.TrimPrefix(illegal.Call, "Lock")
		}
		return errtext.Errorf("window: %w", err)
	}
	// The text is a constant: the path of Lock does not allocate.
	call := "window.Lock"
	if now {
		call = "window.LockNow"
	}
	alone := c.locking.locks.Add(1) == 1
	p, err := c.lockable(ctx, call, target)
	if err == nil {
		err = c.takeWanted(ctx, call)
	}
	if err == nil && p.deferred != nil {
		err = c.blame(call, target, p.deferred.awaitPost(ctx))
	}
	switch {
	case err != nil:
	case alone && !now && p.control.base == nil && c.hints.Scheme&scheduler.Defer != 0:
		p.deferred.want(kind)
	default:
		err = c.lock(ctx, call, kind, target, p)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.epochs.AbortLock(target)
		c.locking.locks.Add(-1)
		return err
	}
	c.epochs.EndLock(target)
	c.openedAs("Lock", name, target)
	return nil
}

// lock acquires a lock.
func (c *core) lock(ctx context.Context, call string, kind LockKind, target int, p *peer) error {
	switch {
	case p.control.base == nil:
		if err := p.deferred.askLock(ctx, kind); err != nil {
			return c.blame(call, target, err)
		}
		return p.deferred.awaitLock(ctx, call)
	case kind == Shared:
		if err := c.lockShared(ctx, call, target, p); err != nil {
			return err
		}
	default:
		if err := c.lockExclusive(ctx, call, target, p); err != nil {
			return err
		}
	}
	c.world.RaceAcquire()
	return nil
}

// lockable returns the peer of a target that is to be locked.
func (c *core) lockable(ctx context.Context, call string, target int) (*peer, error) {
	if err := c.targetFailure(call, target); err != nil {
		return nil, err
	}
	if p := c.peers[target].Load(); p != nil {
		return p, nil
	}
	if err := c.world.Approach(ctx, call, target); err != nil {
		return nil, err
	}
	p, err := c.peer(target)
	if err != nil {
		return nil, c.blame(call, target, fmt.Errorf("reaching rank %d: %w", target, err))
	}
	return p, nil
}

// Unlock ends the epoch that Lock opened, and returns when all operations on target are complete there. If target has
// failed, the epoch ends and Unlock returns a *world.PeerError.
//
// If ctx ends first, the process is out of file descriptors, or a message cannot be sent, Unlock returns that error, and
// another Unlock continues. No other call on target is legal until then, and the lock may be free already.
func (w *Window[T]) Unlock(ctx context.Context, target int) error {
	return w.calls().Unlock(ctx, target)
}

func (w *untyped) Unlock(ctx context.Context, target int) error {
	c := w.core
	const call = "window.Unlock"
	if err := c.check(ctx, "Unlock"); err != nil {
		return err
	}
	if c.remote {
		defer c.endSpan("Unlock", c.world.BeginSpan())
	}
	if err := c.checkRank("Unlock", target); err != nil {
		return err
	}
	c.mu.Lock()
	kind, err := c.epochs.BeginUnlock(target)
	c.mu.Unlock()
	if err != nil {
		return errtext.Errorf("window: %w", err)
	}
	c.settleClosed()
	c.leaves(target)
	p := c.peers[target].Load()
	switch {
	case p.control.base == nil:
		if err = c.blame(call, target, p.deferred.leave(ctx)); !interrupted(ctx, err) {
			p.deferred.setHold(settled)
		}
	case p.link != nil:
		// The lock word would overtake the operations.
		if err = c.blame(call, target, p.deferred.flush(ctx)); !interrupted(ctx, err) {
			c.unlock(kind, target)
		}
	default:
		c.unlock(kind, target)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if interrupted(ctx, err) {
		c.epochs.SuspendUnlock(target)
		return err
	}
	c.epochs.EndUnlock(target)
	c.locking.locks.Add(-1)
	if failed := c.targetFailure(call, target); failed != nil {
		return failed
	}
	if err == nil {
		err = c.completed("Unlock", target, false)
	}
	return err
}

// unlockEach gives the shared locks of LockAll back, but for those of the first notified ranks, and completes the
// operations on all ranks. It returns how many ranks it has given their locks back, and the error that has interrupted
// it. The next call then continues from there. Other errors are kept in unlocking.
//
// An unlock message travels over the same link after the operations, and its AfterReads delays it until the results of
// reads have arrived. So no wait is needed between the two.
func (c *core) unlockEach(ctx context.Context, call string, notified int) (int, error) {
	keep := func(err error) {
		if job.Failed(err) == nil {
			// The flush below, or UnlockAll, reports lost ranks.
			c.unlocking.add(err)
		}
	}
	for ; notified < c.size; notified++ {
		operationErr, err := c.unlockOne(ctx, call, c.behind(notified))
		keep(operationErr)
		if interrupted(ctx, err) {
			return notified, err
		}
		keep(err)
	}
	var interruption, lost keptErrors
	if c.remote {
		c.flushEach(ctx, call, everyone, func(err error) {
			if interrupted(ctx, err) {
				interruption.add(err)
			} else if keep(err); job.Failed(err) != nil {
				lost.add(err)
			}
		})
	}
	if err := interruption.take(); err != nil {
		return notified, err
	}
	for _, err := range lost.errs {
		c.unlocking.add(err)
	}
	if c.world.FailureCount() != 0 {
		for target := range c.size {
			c.unlocking.add(c.peerError(call, target))
		}
	}
	return notified, nil
}

// unlockOne gives the shared lock of a rank back, after the operations. If err says that it is interrupted, the lock is
// held. operationErr is as that of tellUnlock.
func (c *core) unlockOne(ctx context.Context, call string, rank int) (operationErr, err error) {
	p := c.peers[rank].Load()
	if p == nil {
		return nil, nil
	}
	if p.control.base == nil {
		operationErr, err = p.deferred.tellUnlock(ctx)
		return c.blame(call, rank, operationErr), c.blame(call, rank, err)
	}
	if p.link != nil {
		// The lock word would overtake the operations.
		if err = c.blame(call, rank, p.deferred.flush(ctx)); interrupted(ctx, err) {
			return nil, err
		}
	}
	c.unlock(Shared, rank)
	return nil, err
}

// unlock gives a lock back under which nothing is queued. Its store to the lock word comes after the stores of the
// operations. The next holder's load of the word pairs with it.
func (c *core) unlock(kind LockKind, target int) {
	p := c.peers[target].Load()
	switch {
	case p.control.base == nil:
		p.deferred.returnLock()
	case kind == Shared:
		c.world.RaceRelease()
		c.unlockShared(p)
	default:
		c.world.RaceRelease()
		c.unlockExclusive(target, p)
	}
}

// LockAll opens an access epoch to every rank and acquires a shared lock of each. While it waits for a rank that is
// locked exclusively, it holds no other lock. If LockAll returns an error, no epoch is open.
//
// With [NoCheck] LockAll acquires no lock, and connects to no rank before the first operation on it. Ranks
// need not agree on NoCheck. Without NoCheck, LockAll connects to all ranks and requests a lock from each.
func (w *Window[T]) LockAll(ctx context.Context, asserts ...Assert) error {
	return w.calls().LockAll(ctx, asserts...)
}

func (w *untyped) LockAll(ctx context.Context, asserts ...Assert) error {
	c := w.core
	if err := c.check(ctx, "LockAll"); err != nil {
		return err
	}
	defer c.endSpan("LockAll", c.world.BeginSpan())
	assert := together(asserts)
	if assert&^NoCheck != 0 {
		return fmt.Errorf("window: LockAll(%v): %w: allowed is %v", assert, ErrAssert, NoCheck)
	}
	c.mu.Lock()
	err := c.epochs.BeginLockAll()
	c.mu.Unlock()
	if err != nil {
		return errtext.Errorf("window: %w", err)
	}
	c.locking.locks.Add(1)
	unchecked := assert&NoCheck != 0
	if unchecked {
		err = c.lockNone(ctx)
	} else {
		err = c.lockEach(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.locking.locks.Add(-1)
		c.epochs.AbortLockAll()
		return err
	}
	c.unchecked = unchecked
	c.epochs.EndLockAll()
	c.opened("LockAll", -1)
	return nil
}

// lockNone is LockAll with NoCheck.
func (c *core) lockNone(ctx context.Context) error {
	const call = "window.LockAll"
	if err := c.takeWanted(ctx, call); err != nil {
		return err
	}
	if c.world.FailureCount() != 0 {
		return c.anyFailure(call)
	}
	return c.eachLink(everyone, func(rank int, p *peer) error { return c.blame(call, rank, p.deferred.awaitPost(ctx)) })
}

// lockEach acquires a shared lock of every rank, or of none. It waits for a lock only while it holds no other. So it
// takes part in no deadlock, in whatever order other ranks lock.
func (c *core) lockEach(ctx context.Context) error {
	const call = "window.LockAll"
	if err := c.takeWanted(ctx, call); err != nil {
		return err
	}
	err := c.eachLink(everyone, func(rank int, p *peer) error { return c.blame(call, rank, p.deferred.awaitPost(ctx)) })
	if err != nil {
		return err
	}
	for first := 0; ; {
		p, err := c.lockable(ctx, call, first)
		if err == nil {
			err = c.lock(ctx, call, Shared, first, p)
		}
		if err != nil {
			return err
		}
		busy, err := c.lockOthers(ctx, call, first)
		if err != nil || busy < 0 {
			return err
		}
		first = busy
	}
}

// lockOthers acquires a shared lock of every rank but first, whose lock this rank holds. If a rank is busy, or with an
// error, lockOthers gives all locks back. busy is the busy rank, or -1 if all locks are held.
func (c *core) lockOthers(ctx context.Context, call string, first int) (busy int, err error) {
	giveBack := func(before int) {
		c.unlock(Shared, first)
		for target := range before {
			if target != first {
				c.unlock(Shared, target)
			}
		}
	}
	for target := range c.size {
		if target == first {
			continue
		}
		p, err := c.lockable(ctx, call, target)
		if err == nil && p.control.base == nil {
			err = c.blame(call, target, p.deferred.askLock(ctx, Shared))
		} else if err == nil && !c.tryShared(p) {
			giveBack(target)
			return target, nil
		}
		if err != nil {
			giveBack(target)
			return -1, err
		}
	}
	for target := range c.size {
		p := c.peers[target].Load()
		if target == first || p.control.base != nil {
			continue
		}
		// A lock that is free is granted before the reply to Flush.
		err := c.blame(call, target, p.link.Flush(ctx, c.number))
		if free := c.granted[target].Load() == c.tickets[target].Load(); err != nil || !free {
			giveBack(c.size)
			return target, err
		}
	}
	c.world.RaceAcquire()
	return -1, nil
}

// UnlockAll ends the epoch that LockAll opened, and returns when all operations are complete at their targets. If a
// target has failed, the epoch ends and UnlockAll returns an error that wraps a *world.PeerError.
//
// If ctx ends first, the process is out of file descriptors, or a message cannot be sent, UnlockAll returns that error,
// and another UnlockAll continues. No operation, no flush and no other call that opens or closes an access epoch is legal
// until then. The locks of some ranks, or all, may be free already.
func (w *Window[T]) UnlockAll(ctx context.Context) error { return w.calls().UnlockAll(ctx) }

func (w *untyped) UnlockAll(ctx context.Context) error {
	c := w.core
	const call = "window.UnlockAll"
	if err := c.check(ctx, "UnlockAll"); err != nil {
		return err
	}
	defer c.endSpan("UnlockAll", c.world.BeginSpan())
	c.mu.Lock()
	err := c.epochs.BeginUnlockAll()
	notified := c.epochs.Notified()
	if c.unchecked {
		notified = c.size
	}
	c.mu.Unlock()
	if err != nil {
		return errtext.Errorf("window: %w", err)
	}
	c.settleClosed()
	c.leaves(-1)
	notified, err = c.unlockEach(ctx, call, notified)
	c.mu.Lock()
	if err != nil {
		c.epochs.SuspendUnlockAll(notified)
		c.mu.Unlock()
		return err
	}
	err = c.unlocking.take()
	c.epochs.EndUnlockAll()
	c.locking.locks.Add(-1)
	c.mu.Unlock()
	if err == nil {
		err = c.completed("UnlockAll", -1, false)
	}
	return err
}
