package window

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/onesided/rma/epoch"
	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/scheduler"
	"github.com/onesided/rma/verbs"
)

// The words of Start…Complete and Post…Wait count: the n-th post of a target to an
// origin sets the target's post word in the origin's block to n; the n-th complete
// of an origin towards a target sets the origin's complete word in the target's
// block to n. Start waits for the posts it matches, Wait for the completes. An
// origin's complete n follows the target's post n, so a word is never ahead by
// more than one. Over a link Start waits for the post before, and what rides with the
// Complete for this one: see ride.go.

// Start opens an access epoch to the ranks of group. It blocks until each of them has posted a matching exposure, but for
// those that share no memory with this rank: what is done to them waits for that, at the latest in the Complete or in
// the target. If it fails no epoch is open.
//
// Ranks that both post and start must post first. Two that start epochs to each other before either has posted wait for
// ever where they share memory.
func (w *untyped) Start(ctx context.Context, group Group) error {
	c := w.core
	defer c.world.EndSpan("Start", c.world.BeginSpan())
	if err := checkContext(ctx, "Start"); err != nil {
		return err
	}
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

// postRides tells whether a target's post may be heard of when operations on it leave.
func (c *core) postRides(target int) bool {
	p := c.peers[target].Load()
	return p != nil && p.control.base == nil && c.hints.scheme&scheduler.Defer != 0
}

// Complete ends the epoch that Start opened: origin buffers are the program's
// again, results are valid. The operations are complete at a target when its Wait
// has returned.
//
// If some could not be sent, for a reason of this rank's own, that is its error alone, and
// the targets are told all the same. It returns a *world.PeerError if a target has failed;
// the epoch is over all the same. With the context's error it has not ended, and goes on
// when it is called again.
func (w *untyped) Complete(ctx context.Context) error {
	c := w.core
	defer c.world.EndSpan("Complete", c.world.BeginSpan())
	if err := checkContext(ctx, "Complete"); err != nil {
		return err
	}
	c.mu.Lock()
	group, err := c.epochs.BeginComplete()
	told := c.epochs.Told()
	c.mu.Unlock()
	if err != nil {
		return errtext.Errorf("window: %w", err)
	}
	c.settleClosed()
	c.leaves(-1)
	for i := told; i < group.Len(); i++ {
		target := group.After(c.rank, i)
		if e := c.tell(ctx, "window.Complete", target, completeAt, c.epochs.StartNumber(target)); interrupted(ctx, e) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.epochs.SuspendComplete(i)
			return e
		} else if err == nil {
			err = e
		}
	}
	if c.remote {
		settled := c.settleRemote(ctx, "window.Complete", group.Contains)
		if err == nil || settled != nil && settled.Error() != err.Error() {
			err = errors.Join(err, settled)
		}
		_ = c.eachLink(group.Contains, func(_ int, p *peer) error { p.deferred.learn(); return nil })
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if interrupted(ctx, err) {
		c.epochs.SuspendComplete(group.Len())
	} else {
		c.epochs.EndComplete()
	}
	if err == nil {
		err = c.completed("Complete", -1, false)
	}
	return err
}

// interrupted tells whether err is that of a call which its context has cut short, or that
// this process could not make a connection yet.
func interrupted(ctx context.Context, err error) bool {
	ended := ctx.Err() != nil && (ours(err, ctx.Err()) || ours(err, context.Cause(ctx)))
	return ended || ours(err, verbs.ErrShortage)
}

// ours tells whether err is one that this rank may call again after. Another may have failed for
// such a one of its own, and that is final.
func ours(err, one error) bool {
	if !errors.Is(err, one) {
		return false
	}
	var failed *job.PeerError
	return !errors.As(err, &failed) || !errors.Is(failed, one)
}

// throughShortage calls what cannot be left to a later call until this process is not short of what
// a connection takes.
func throughShortage(call func() error) error {
	for {
		if err := call(); !ours(err, verbs.ErrShortage) {
			return err
		}
	}
}

// Post exposes this rank's part of the window to the ranks of group. It does not
// wait for them, but until a process answers that this one has never met: the context ends that. It
// returns a *world.PeerError if one of them has failed; the others have the exposure all the same.
func (w *untyped) Post(ctx context.Context, group Group) error {
	c := w.core
	defer c.world.EndSpan("Post", c.world.BeginSpan())
	if err := checkContext(ctx, "Post"); err != nil {
		return err
	}
	if err := c.reachEach(ctx, "Post", group); err != nil {
		return err
	}
	c.mu.Lock()
	err := c.epochs.BeginPost(group)
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
	for i := range group.Len() {
		origin := group.Rank(i)
		// It cannot be taken back; failures are noticed in bounded time.
		if e := throughShortage(func() error {
			return c.tell(context.Background(), "window.Post", origin, postAt, c.epochs.PostNumber(origin))
		}); err == nil {
			err = e
		}
	}
	c.mu.Lock()
	c.epochs.EndPost()
	c.mu.Unlock()
	return err
}

// reachEach maps the parts of a group, but of ranks that have failed, so that they
// can be told of what cannot be taken back. It is before a call begins: to meet
// another process may take long.
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
		var failed *job.PeerError
		if _, err := c.peer(rank); err != nil && !errors.As(err, &failed) {
			return errtext.Errorf("window: %s: reaching rank %d: %w", call, rank, err)
		}
	}
	return nil
}

// Wait ends the exposure that Post began. It blocks until every rank of its group
// has called Complete; all their operations are in window memory then. If a rank of
// the group has failed the exposure ends with a *world.PeerError.
func (w *untyped) Wait(ctx context.Context) error {
	c := w.core
	defer c.world.EndSpan("Wait", c.world.BeginSpan())
	if err := checkContext(ctx, "Wait"); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	group, err := c.epochs.BeginWait("Wait")
	if err != nil {
		return errtext.Errorf("window: %w", err)
	}
	if err := c.hear(ctx, "window.Wait", roll{c, group, completeAt}); err != nil {
		var lost *job.PeerError
		if errors.As(err, &lost) {
			c.epochs.EndWait()
		} else {
			c.epochs.SuspendWait()
		}
		return err
	}
	c.epochs.EndWait()
	return nil
}

// Test is Wait that does not block: it tells whether the exposure has ended.
func (w *untyped) Test() (bool, error) { return w.core.test() }

func (c *core) test() (bool, error) {
	c.mu.Lock()
	group, err := c.epochs.BeginWait("Test")
	c.mu.Unlock()
	if err != nil {
		return false, errtext.Errorf("window: %w", err)
	}
	if err := c.beginReading(noWait, "window.Test"); err != nil {
		return false, err
	}
	defer c.endReading()
	c.world.Poll()
	ended, err := c.exposureEnded(group)
	c.mu.Lock()
	defer c.mu.Unlock()
	if ended || err != nil {
		c.epochs.EndWait()
	} else {
		c.epochs.SuspendWait()
	}
	return ended, err
}

// exposureEnded tells whether all have completed, or why one never will: what it did
// before it failed or left is done, so it is looked at once more.
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
		c.world.AfterHearing()
	}
	return ended, nil
}

// reached tells whether word has come to number, which may have wrapped.
func reached(word *atomic.Uint32, number uint32) bool { return epoch.Reached(word.Load(), number) }

// tell sets a word that this rank writes in rank's block, after everything that
// this rank has done to window memory and read of it, and wakes rank. reachEach has reached it, or it
// has failed: there is nothing to wait for.
func (c *core) tell(ctx context.Context, call string, rank int, at uintptr, number uint32) error {
	if err := c.targetFailure(call, rank); err != nil {
		return err
	}
	p, err := c.peer(rank)
	if err != nil {
		return c.blame(call, rank, err)
	}
	if p.control.base == nil {
		return c.blame(call, rank, p.deferred.tell(ctx, at, number))
	}
	if p.link != nil {
		// The data of this window goes another way than this word.
		if err := p.deferred.flush(ctx); err != nil {
			return c.blame(call, rank, err)
		}
	}
	c.world.BeforeTelling()
	p.control.pair(c.rank, at).Store(number)
	p.neighbor.Ring()
	return nil
}

// tell sets a word that this rank writes in the block of one that is told by messages.
func (d *deferred) tell(ctx context.Context, at uintptr, number uint32) error {
	if at == completeAt {
		if rides, err := d.complete(ctx, number); rides || err != nil {
			return err
		}
		err := d.start(ctx, scheduler.End)
		if err != nil && !interrupted(ctx, err) {
			// What could not be sent is this rank's error alone: the target is not to wait.
			return errors.Join(err, d.say(ctx, at, number))
		}
		if err != nil {
			return err
		}
	} else if _, err := d.begin(ctx, scheduler.Message); err != nil {
		return err
	}
	return d.say(ctx, at, number)
}

// say sends a word.
func (d *deferred) say(ctx context.Context, at uintptr, number uint32) error {
	if at == completeAt {
		d.mu.Lock()
		d.expectDirect()
		d.mu.Unlock()
	}
	err := d.link.TellWithin(ctx, &job.Message{Kind: messageWord, Service: d.core.number, A: uint8(at), X: uint64(number), AfterReads: true}, nil)
	d.link.Post()
	return err
}

// A roll is what each rank of a group has to tell, in its word of this rank's block: its post or its complete.
type roll struct {
	*core
	group Group
	at    uintptr
}

// word is that of a rank of the group, and the number that it has to come to.
func (r *roll) word(i int) (*atomic.Uint32, uint32) {
	rank := r.group.Rank(i)
	word := r.own.control.pair(rank, r.at)
	switch {
	case r.at == completeAt:
		return word, r.epochs.PostNumber(rank)
	case r.postRides(rank) && !r.world.Gone(rank) && !r.parted(rank):
		// It is heard of later, but the one before it now.
		return word, r.epochs.StartNumber(rank) - 1
	}
	return word, r.epochs.StartNumber(rank)
}

// told tells whether a rank of the group has told what it has to.
func (r *roll) told(i int) bool {
	word, number := r.word(i)
	return reached(word, number)
}

// willTell tells whether a rank of the group that is gone has told what it has to, or what it has sent will.
func (r *roll) willTell(i int) bool {
	return r.at == completeAt && r.server.completing(r.group.Rank(i)) || r.told(i)
}

// lost is the error of a rank of the group that has failed or left before it has told. It looks at others than the i-th, for
// which it waits, only when it may take long: at those before it, too, of which the post was to be heard of later.
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

// hear waits until all ranks of a group have told. It is
// called with the latch. Other goroutines of the rank may have to synchronize
// before a word can come, so the latch is not kept while it sleeps or yields:
// what is in progress is written in epochs.
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
	c.world.AfterHearing()
	return nil
}

// awaitRoll waits until the i-th rank of a group has told, as long as none is lost.
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

// awaitWord waits until a word that rank writes, in this rank's block or by messages, has come to
// number. What has come counts, whatever else is found then. passive, where not nil, is what asks: rank answers by itself, unless it
// has to post first.
func (c *core) awaitWord(ctx context.Context, call string, rank int, word *atomic.Uint32, number uint32, passive *deferred) error {
	if err := c.beginReading(ctx, call); err != nil {
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
			err = c.pause(ctx, call, &wait)
		}
		if err != nil && !reached(word, number) {
			return awaited(ctx, err, "it waits for rank %d", rank)
		}
	}
	c.world.AfterHearing()
	return nil
}

// heldLooks is how often a word is looked at before the latch is given up: as long
// as giving it up takes.
const heldLooks = 20
