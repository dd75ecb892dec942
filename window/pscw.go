package window

import (
	"cmp"
	"context"
	"sync/atomic"

	"github.com/onesided/rma/epoch"
	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/scheduler"
)

// The words of Start…Complete and Post…Wait are counters:
//
//   - The n-th post of a target to an origin sets the target's post word in the origin's control block to n.
//   - The n-th complete of an origin towards a target sets the origin's complete word in the target's control block to
//     n.
//
// Start waits for the posts that it matches, Wait for the completes. An origin's complete n follows the target's post
// n, so a word is never ahead by more than one. Over a link Start waits for the previous post only. The operations and
// the Complete wait for the post that Start matches: see ride.go.

// Start opens an access epoch to the ranks of group. It waits until each rank that shares memory with this one has
// posted a matching exposure. It does not wait for the other ranks of group: operations on them wait for the post
// later, in Complete or at the target at the latest. If Start returns an error, no epoch is open.
//
// A rank that posts and starts calls Post first. Two ranks that share memory and start epochs to each other before
// either has posted wait for each other.
func (w *Window[T]) Start(ctx context.Context, group Group) error { return w.calls().Start(ctx, group) }

func (w *untyped) Start(ctx context.Context, group Group) error {
	c := w.core
	if err := c.check(ctx, "Start"); err != nil {
		return err
	}
	defer c.endSpan("Start", c.world.BeginSpan())
	if err := c.reachEach(ctx, "Start", group); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.epochs.BeginStart(group); err != nil {
		return errtext.Errorf("window: %w", err)
	}
	if err := c.hear(ctx, "window.Start", roll{c, group, postAt}); err != nil {
		c.epochs.AbortStart()
		return err
	}
	for i := range group.Len() {
		if target := group.Rank(i); c.postRides(target) {
			c.peers[target].Load().deferred.expect(c.epochs.StartNumber(target))
		}
	}
	c.epochs.EndStart()
	c.opened("Start", -1)
	return nil
}

// postRides reports whether Start may return before the target's post arrives, so that the operations wait for the
// post.
func (c *core) postRides(target int) bool {
	p := c.peers[target].Load()
	return p != nil && p.control.base == nil && c.hints.Scheme&scheduler.Defer != 0
}

// Complete ends the epoch that Start opened. Then origin buffers belong to the program again and results are valid. The
// operations are complete at a target when its Wait has returned.
//
// If this rank could not send some operations, only its own Complete returns an error. The targets learn of the end of
// the epoch all the same. If a target has failed, the epoch ends and Complete returns a *world.PeerError. If ctx ends
// first, the process is out of file descriptors, or a target cannot be notified, Complete returns that error, and
// another Complete continues.
func (w *Window[T]) Complete(ctx context.Context) error { return w.calls().Complete(ctx) }

func (w *untyped) Complete(ctx context.Context) error {
	c := w.core
	if err := c.check(ctx, "Complete"); err != nil {
		return err
	}
	defer c.endSpan("Complete", c.world.BeginSpan())
	if err := c.checkJob("Complete"); err != nil {
		return err
	}
	c.mu.Lock()
	group, err := c.epochs.BeginComplete()
	notified := c.epochs.Notified()
	c.mu.Unlock()
	if err != nil {
		return errtext.Errorf("window: %w", err)
	}
	c.settleClosed()
	c.leaves(-1)
	notified, err = c.completeEach(ctx, "window.Complete", group, notified)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.epochs.SuspendComplete(notified)
		return err
	}
	err = c.completing.take()
	c.epochs.EndComplete()
	if err == nil {
		err = c.completed("Complete", -1, false)
	}
	return err
}

// completeEach tells the ranks of a group that this one has completed, but for the first notified, and waits until the
// buffers of the operations on them belong to the program again. It returns how many ranks it has notified, and the
// error that has interrupted it. The next call then continues from there. Other errors are kept in completing.
func (c *core) completeEach(ctx context.Context, call string, group Group, notified int) (int, error) {
	for ; notified < group.Len(); notified++ {
		target := group.After(c.rank, notified)
		operationErr, err := c.tell(ctx, call, target, completeAt, c.epochs.StartNumber(target))
		c.completing.add(operationErr)
		if interrupted(ctx, err) {
			return notified, err
		}
		c.completing.add(err)
	}
	if !c.remote {
		return notified, nil
	}
	var interruption keptErrors
	_ = c.eachLink(group.Contains, func(rank int, p *peer) error {
		if err := c.blame(call, rank, p.deferred.settle(ctx)); interrupted(ctx, err) {
			interruption.add(err)
		} else {
			c.completing.add(err)
		}
		return nil
	})
	if err := interruption.take(); err != nil {
		return notified, err
	}
	_ = c.eachLink(group.Contains, func(_ int, p *peer) error { p.deferred.learn(); return nil })
	return notified, nil
}

// Post exposes this rank's part of the window to the ranks of group. It does not wait for their Start. If a rank of
// group has failed, Post returns a *world.PeerError, and the other ranks have the exposure all the same.
//
// Post may wait until it has mapped memory of a rank on this host for the first time, and over a network for room. There
// is no exposure if ctx ends while Post maps memory, or if this rank cannot connect to a rank. If ctx ends later, the
// process is out of file descriptors, or a message cannot be sent, Post returns that error, and the same Post made again
// continues. Until then no other Post, no Wait and no Test is legal: Wait and Test return [ErrBusy], and Post of another
// group returns [ErrEpochOpen].
func (w *Window[T]) Post(ctx context.Context, group Group) error { return w.calls().Post(ctx, group) }

func (w *untyped) Post(ctx context.Context, group Group) error {
	c := w.core
	if err := c.check(ctx, "Post"); err != nil {
		return err
	}
	defer c.endSpan("Post", c.world.BeginSpan())
	if err := c.reachEach(ctx, "Post", group); err != nil {
		return err
	}
	c.mu.Lock()
	err := c.epochs.BeginPost(group)
	notified := c.epochs.PostNotified()
	if err == nil {
		c.opened("Post", -1)
	}
	c.mu.Unlock()
	if err != nil {
		return errtext.Errorf("window: %w", err)
	}
	for i := range group.Len() {
		c.posted[group.Rank(i)].Store(c.epochs.PostNumber(group.Rank(i)))
	}
	c.server.serveRides()
	notified, err = c.postEach(ctx, "window.Post", group, notified)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		// A post cannot be taken back.
		c.epochs.SuspendPost(notified)
		return err
	}
	c.epochs.EndPost()
	return c.posting.take()
}

// postEach notifies the ranks of a group, but for the first notified. It returns how many ranks it has notified, and
// the error that has interrupted it. The next call then continues from there. Other errors are kept in posting.
func (c *core) postEach(ctx context.Context, call string, group Group, notified int) (int, error) {
	for i := range notified {
		// The first Post returned before it could report a failure of this rank.
		c.posting.add(c.targetFailure(call, group.Rank(i)))
	}
	for ; notified < group.Len(); notified++ {
		origin := group.Rank(notified)
		operationErr, err := c.tell(ctx, call, origin, postAt, c.epochs.PostNumber(origin))
		c.posting.add(operationErr)
		if interrupted(ctx, err) {
			return notified, err
		}
		c.posting.add(err)
	}
	return notified, nil
}

// reachEach maps the parts of the ranks of a group that have not failed, so that the call can notify them without a
// wait. It runs before the call begins, because mapping an unmapped peer needs its reply, which may take long.
func (c *core) reachEach(ctx context.Context, call string, group Group) error {
	if err := c.checkJob(call); err != nil {
		return err
	}
	for i := range group.Len() {
		rank := group.Rank(i)
		if rank >= c.size || c.peers[rank].Load() != nil || c.closed.Load() {
			continue
		}
		if err := c.world.Approach(ctx, "window."+call, rank); err != nil {
			return err
		}
		if _, err := c.peer(rank); err != nil && job.Failed(err) == nil {
			return errtext.Errorf("window: %s: reaching rank %d: %w", call, rank, err)
		}
	}
	return nil
}

// Wait ends the exposure that Post began. It waits until every rank of the group has called Complete. Then all their
// operations are in window memory. If a rank of the group has failed, the exposure ends and Wait returns a
// *world.PeerError. If ctx ends first, Wait returns its error, and another Wait or Test continues.
func (w *Window[T]) Wait(ctx context.Context) error { return w.calls().Wait(ctx) }

func (w *untyped) Wait(ctx context.Context) error {
	c := w.core
	if err := c.check(ctx, "Wait"); err != nil {
		return err
	}
	defer c.endSpan("Wait", c.world.BeginSpan())
	if err := c.checkJob("Wait"); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	group, err := c.epochs.BeginWait("Wait")
	if err != nil {
		return errtext.Errorf("window: %w", err)
	}
	if err := c.hear(ctx, "window.Wait", roll{c, group, completeAt}); err != nil {
		if job.Failed(err) != nil {
			c.epochs.EndWait()
		} else {
			c.epochs.SuspendWait()
		}
		return err
	}
	c.epochs.EndWait()
	return nil
}

// Test is [Window.Wait] that does not block. It reports whether the exposure has ended.
func (w *Window[T]) Test() (bool, error) { return w.calls().Test() }

func (w *untyped) Test() (bool, error) {
	if w.core == nil {
		return false, unmade("Test")
	}
	if err := w.core.checkJob("Test"); err != nil {
		return false, err
	}
	return w.core.test()
}

func (c *core) test() (bool, error) {
	c.mu.Lock()
	group, err := c.epochs.BeginWait("Test")
	c.mu.Unlock()
	if err != nil {
		return false, errtext.Errorf("window: %w", err)
	}
	ended, err := c.pollExposure(group)
	c.mu.Lock()
	defer c.mu.Unlock()
	if ended || err != nil {
		c.epochs.EndWait()
	} else {
		c.epochs.SuspendWait()
	}
	return ended, err
}

// pollExposure is exposureEnded that makes progress first.
func (c *core) pollExposure(group Group) (bool, error) {
	if err := c.beginReading(noWait, "window.Test"); err != nil {
		return false, err
	}
	defer c.endReading()
	c.world.Poll()
	return c.exposureEnded(group)
}

// exposureEnded reports whether all ranks of the group have completed, or why one never will. A rank may have completed
// before it failed or left, so its word is loaded once more after Gone.
func (c *core) exposureEnded(group Group) (bool, error) {
	r, ended := roll{c, group, completeAt}, true
	for i := range group.Len() {
		origin := group.Rank(i)
		if r.told(i) {
			continue
		}
		if origin == c.rank || !c.world.Gone(origin) && !c.parted(origin) || r.willTell(i) {
			ended = ended && r.told(i)
			continue
		}
		if err := c.targetFailure("window.Test", origin); err != nil {
			return false, err
		}
		if c.world.Gone(origin) {
			return false, c.world.LeftBy("window.Test", origin)
		}
		return false, &job.PeerError{Rank: origin, Op: "window.Test", Cause: ErrDeparted}
	}
	if ended {
		c.world.RaceAcquire()
	}
	return ended, nil
}

// reached reports whether word has reached number, which may have wrapped.
func reached(word *atomic.Uint32, number uint32) bool { return epoch.Reached(word.Load(), number) }

// tell sets a word of this rank in rank's control block, after all accesses of this rank to window memory, and wakes
// rank. The store pairs with the load in reached. reachEach has mapped rank, or rank has failed: tell does not wait to
// map it.
//
// If err says that tell is interrupted, the word is not set. operationErr is the error of operations before the word,
// which no later call returns. rank must not wait for the word because of them: only this rank gets the error.
func (c *core) tell(ctx context.Context, call string, rank int, at uintptr, number uint32) (operationErr, err error) {
	if err := c.targetFailure(call, rank); err != nil {
		return nil, err
	}
	p, err := c.peer(rank)
	if err != nil {
		return nil, c.blame(call, rank, keepOpenIfUnsent(ctx, err))
	}
	if p.control.base == nil {
		operationErr, err = p.deferred.tell(ctx, at, number)
		return c.blame(call, rank, operationErr), c.blame(call, rank, err)
	}
	if p.link != nil {
		// The operations use the link and the word does not: it would overtake them.
		if operationErr = c.blame(call, rank, p.deferred.flush(ctx)); interrupted(ctx, operationErr) {
			return nil, operationErr
		}
	}
	c.world.RaceRelease()
	p.control.pair(c.rank, at).Store(number)
	p.neighbor.Wake()
	return operationErr, nil
}

// tell sets a word of this rank at a rank that is reached by messages.
func (d *deferred) tell(ctx context.Context, at uintptr, number uint32) (operationErr, err error) {
	if at == completeAt {
		rides, err := d.complete(ctx, number)
		if rides || job.Failed(err) != nil {
			// The queue is kept: the call that continues sends it.
			return nil, keepOpenIfUnsent(ctx, err)
		}
		if operationErr = err; operationErr == nil {
			operationErr = d.start(ctx, scheduler.End)
		} else if !interrupted(ctx, err) {
			// What cannot be sent must not leave in a later epoch.
			d.mu.Lock()
			d.drop()
			d.mu.Unlock()
		}
	} else {
		_, operationErr = d.begin(ctx, scheduler.Message)
	}
	if interrupted(ctx, operationErr) {
		return nil, operationErr
	}
	return operationErr, d.say(ctx, at, number)
}

// say sends a word as a message.
func (d *deferred) say(ctx context.Context, at uintptr, number uint32) error {
	if at == completeAt {
		d.mu.Lock()
		d.expectDirect()
		d.mu.Unlock()
	}
	err := d.link.TellWithin(ctx, &job.Message{Kind: messageWord, Service: d.core.number, A: uint8(at), X: uint64(number), AfterReads: true}, nil)
	d.link.Post()
	return keepOpenIfUnsent(ctx, err)
}

// A roll has the words that the ranks of a group set in this rank's control block: their posts or their completes.
type roll struct {
	*core
	group Group
	at    uintptr
}

// word returns the word of the i-th rank of the group, and the number that it has to reach.
func (r *roll) word(i int) (*atomic.Uint32, uint32) {
	rank := r.group.Rank(i)
	word := r.own.control.pair(rank, r.at)
	switch {
	case r.at == completeAt:
		return word, r.epochs.PostNumber(rank)
	case r.postRides(rank) && !r.world.Gone(rank) && !r.parted(rank):
		// The operations wait for the last post. Start waits for the one before.
		return word, r.epochs.StartNumber(rank) - 1
	}
	return word, r.epochs.StartNumber(rank)
}

// told reports whether the i-th rank of the group has set its word.
func (r *roll) told(i int) bool {
	word, number := r.word(i)
	return reached(word, number)
}

// willTell is told for a rank that has failed or left. It also reports true if the rank has sent a message that will
// set its word.
func (r *roll) willTell(i int) bool {
	return r.at == completeAt && r.server.completing(r.group.Rank(i)) || r.told(i)
}

// lost returns the error of a rank of the group that has failed or left before it set its word. While the wait is
// short, lost looks at the i-th rank only, for which the call waits. Otherwise it looks at all ranks, also at those
// before i whose post the operations wait for.
func (r *roll) lost(call string, i int, wait *job.Waiter) error {
	last := i + 1
	if r.world.FailureCount() != 0 || wait.AboutToSleep() {
		i, last = 0, r.group.Len()
	}
	for ; i < last; i++ {
		if r.told(i) {
			continue
		}
		if err := r.core.lost(call, r.group.Rank(i), wait); err != nil && !r.willTell(i) {
			return err
		}
	}
	return nil
}

// hear waits until all ranks of a group have set their words. The caller holds the latch. hear releases the latch while
// it sleeps or yields, because other goroutines of the rank may have to synchronize before a word is set. Meanwhile
// epochs records the call in progress.
func (c *core) hear(ctx context.Context, call string, r roll) error {
	for i := range r.group.Len() {
		word, number := r.word(i)
		told := false
		for look := 0; !told && look < heldLooks; look++ {
			told = reached(word, number)
		}
		if told {
			continue
		}
		c.mu.Unlock()
		err := c.awaitRoll(ctx, call, r, i)
		c.mu.Lock()
		if err != nil {
			return err
		}
	}
	c.world.RaceAcquire()
	return nil
}

// awaitRoll waits until the i-th rank of a group has set its word, or returns an error if that cannot happen any more.
func (c *core) awaitRoll(ctx context.Context, call string, r roll, i int) error {
	if err := c.beginReading(ctx, call); err != nil {
		return err
	}
	defer c.endReading()
	wait := c.world.NewWaiter()
	defer wait.Finish()
	wait.For(r.group.Rank(i))
	for word, number := r.word(i); !reached(word, number); {
		err := r.lost(call, i, &wait)
		if err == nil {
			err = c.pause(ctx, call, &wait)
		}
		if err != nil && !reached(word, number) {
			return awaited(ctx, err, "it waits for rank %d", r.group.Rank(i))
		}
	}
	return nil
}

// awaitWord waits until a word that rank sets, in this rank's control block or by messages, has reached number. It
// looks at the word once more before it returns an error. call is the call of the program, or "" if the caller of
// awaitWord adds it by blame. Errors other than a *world.PeerError then begin with doing. passive is the queue of a
// request that rank serves without a call of its program, once rank has posted. Otherwise passive is nil.
func (c *core) awaitWord(ctx context.Context, call, doing string, rank int, word *atomic.Uint32, number uint32, passive *deferred) error {
	head := cmp.Or(call, doing)
	if err := c.beginReading(ctx, head); err != nil {
		return err
	}
	defer c.endReading()
	wait := c.world.NewWaiter()
	defer wait.Finish()
	wait.For(rank)
	for !reached(word, number) {
		var err error
		if passive != nil && passive.posted() {
			err = c.unserved(call, rank, &wait)
		} else {
			err = c.lost(call, rank, &wait)
		}
		if err == nil {
			err = c.pause(ctx, head, &wait)
		}
		if err != nil && !reached(word, number) {
			return awaited(ctx, err, "it waits for rank %d", rank)
		}
	}
	c.world.RaceAcquire()
	return nil
}

// heldLooks is the number of polls of a word before the latch is released. They take about as long as a release.
const heldLooks = 20
