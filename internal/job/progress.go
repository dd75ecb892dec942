package job

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/onesided/rma/verbs"
)

// Poll does whatever protocol work can be done now and returns how much was found.
func (w *World) Poll() int {
	n, _ := w.pollIfFree()
	return n
}

// pollIfFree is Poll, and also reports whether it polled. It does not if another goroutine is polling.
func (w *World) pollIfFree() (n int, polled bool) {
	w.polls.Add(1)
	n, polled = w.tryPoll()
	if n > 0 {
		w.attended(busyPoll)
	}
	if w.errands.some.Load() {
		w.errands.do()
	}
	return n, polled
}

// tryPoll is pollIfFree without background tasks, and does not count as a poll of a waiting goroutine.
func (w *World) tryPoll() (n int, polled bool) {
	if !w.post.mu.TryLock() {
		return 0, false
	}
	// A simulated rank may be killed in the midst of it.
	defer w.post.mu.Unlock()
	return w.poll(), true
}

// poll is Poll with the mutex of progress.
func (w *World) poll() int {
	n, ending := 0, len(w.ending)
	w.demand.polls++
	w.root.readObituaries()
	for _, c := range w.cards {
		if c != nil {
			n += w.pollCard(c)
		}
	}
	if len(w.dialing) > 0 {
		n += w.rise()
	}
	if ending > 0 {
		w.endLinks(ending, n == 0)
	}
	if w.news.some.Load() {
		w.passOn()
	}
	w.demand.look(w)
	if n == 0 && w.unseen.Load() {
		// Behind what has come of it.
		w.seeLost()
	}
	if w.fallen.Load() {
		w.closeFallen()
	}
	if len(w.retries) > 0 {
		w.retry()
	}
	if retrying := len(w.retries) > 0; w.retrying.Load() != retrying {
		w.retrying.Store(retrying)
	}
	if n > 0 {
		// What came may be what another goroutine sleeps for.
		w.channel.Ring()
	}
	return n
}

func (w *World) pollCard(c *card) int {
	n := c.device.PollConnections(w.callers[:])
	if n > 0 {
		for _, caller := range w.callers[:n] {
			w.accept(c, caller)
		}
		w.demand.urgent++
		clear(w.callers[:n])
	}
	if c.rings != nil {
		n += c.pollRings()
	}
	done := c.queue.Poll(w.polled[:])
	for i := range done {
		completion := &w.polled[i]
		if l := c.link(completion.QueuePair); l != nil {
			l.completed(completion)
		}
	}
	n += done
	if c.rings != nil && c.rings.due {
		c.reviewRings()
	}
	if o := c.origins.Load(); o != nil && o.untidy.Load() {
		o.tidy()
	}
	if c.server != nil {
		if activity := c.server.Activity(); activity != c.activity {
			c.activity = activity
			n++
			if served := c.server.Served(); served != c.served {
				c.served = served
				w.demand.urgent++
			}
		}
	}
	return n
}

// link is the link over a queue pair, if that is one's.
func (c *card) link(number uint32) *Link {
	if c.last == nil || c.lastNumber != number {
		c.last, c.lastNumber = c.links[number], number
	}
	return c.last
}

// forget has the queue pair of a number no link's any more.
func (c *card) forget(number uint32) {
	delete(c.links, number)
	c.last = nil
}

// Exclude calls f while no Service serves, and nothing is retried.
func (w *World) Exclude(f func()) {
	w.post.mu.Lock()
	defer w.post.mu.Unlock()
	f()
}

// Retry has try called whenever progress is made, until it returns true. It is for a
// Service that waits for what other ranks do to memory that they map, and which
// nothing announces.
func (w *World) Retry(try func() bool) { w.retries = append(w.retries, try) }

// TryAgain makes progress if anything waits to be retried: for a caller who has done what
// that may wait for.
func (w *World) TryAgain() {
	if w.retrying.Load() {
		w.Poll()
	}
}

// retry tries again what waits. Each may have something else tried from now on.
func (w *World) retry() {
	waiting := w.retries
	w.retries = w.noRetries
	for _, try := range waiting {
		if !try() {
			w.retries = append(w.retries, try)
		}
	}
	clear(waiting)
	w.noRetries = waiting[:0]
}

// The driver is the goroutine that makes progress while nobody else does, so that
// origins get on while this rank's program computes. Where somebody waits, and so
// drives progress faster than a goroutine could that sleeps in between, it stands
// back: while the others have polled enough since it last looked, it only looks again,
// after a shortestStandBack at first, and less often the longer that goes on. Go's timers
// are no finer than the first; the second is what an origin may have to wait when a long
// wait of this rank has ended.
//
// A program that computes in between, but calls often, is disturbed by a driver that is woken by
// all that comes, and more than its call would be by finding it: the driver takes a core from a rank,
// and what the runtime does about its sleeps another part of it. So while nobody has missed it for
// calmAfter the driver stands back for a shortestStandBack wherever others have polled at all since it
// last looked. Who waits for an answer meanwhile waits a few times that long at most: until the driver has
// seen that nobody polls any more. By then somebody has missed it, and it stands back no more.
//
// Where the program has one processor (GOMAXPROCS) it does stand back, missed or not: a goroutine that sleeps in a system call
// keeps that processor until the runtime looks for it, after 20 us to 10 ms, and the rank, which calls often, is what waits.
// Behind what is found, and whenever the runtime interrupts a rank that computes, every 10 to 20 ms, it sleeps only for so long
// as there is little to lose, unless nobody else has something to do; and a nap that was so long did not end before the rank was
// interrupted.
const (
	shortestStandBack = time.Millisecond
	longestStandBack  = 8 * time.Millisecond
)

// pollsApart is how far apart the polls of a rank are on average that waits most of the
// time, those included that find something and take longer.
const pollsApart = 10 * time.Microsecond

// busyPoll is about how long a poll may take that finds something, or sends much: it counts
// as those that would be in it.
const busyPoll = 8 * pollsApart

// attendance is what the driver has seen of the polls of others, and of what counts as some.
type attendance struct {
	polls, credit uint64
	since         time.Time
}

// look tells whether the polls since it was last asked are enough: those of somebody who waits; and whether there
// were some. A short time tells nothing: a single wait may fill it. Of one who waits in a crowded job
// any poll is enough, because others may have the processor for long before the next; who
// makes none is asleep for long, and so the driver may be.
func (a *attendance) look(polls, credit uint64, now time.Time, crowded bool) (enough, some bool) {
	passed := now.Sub(a.since)
	if passed < shortestStandBack {
		return crowded, crowded
	}
	made := polls - a.polls
	grown := made + credit - a.credit
	*a = attendance{polls, credit, now}
	return made > 0 && (grown >= uint64(passed/pollsApart) || crowded), made > 0
}

const (
	// What comes later than lateAfter behind a wait the driver would have found sooner than the next. Of what is only to
	// complete, as a fence of ranks that compute as long as each other has it, that is so after shortestStandBack.
	lateAfter = 100 * time.Microsecond
	// calmAfter is how long nobody has missed the driver where it need not hurry.
	calmAfter = 10 * time.Millisecond
)

// A demand is what tells whether peers need the driver: somebody of theirs waits for what this rank serves, or
// sends no more before. It belongs to progress, but for last.
type demand struct {
	// urgent counts what they wait for, completing of what they wait for only the completion; of these served and
	// completed have been looked at. polls numbers the polls.
	urgent, served, completing, completed, polls uint64
	// last is when something was served of that while nobody waited here, and nobody had for lateAfter.
	last atomic.Int64
}

// look looks at what was served, behind a poll.
func (d *demand) look(w *World) {
	if d.urgent == d.served && d.completing == d.completed {
		return
	}
	late := lateAfter
	if d.urgent == d.served {
		late = shortestStandBack
	}
	d.served, d.completed = d.urgent, d.completing
	if now := w.Now(); w.waiting.Load() == 0 && now-time.Duration(w.waited.Load()) >= late {
		d.last.Store(int64(now))
	}
}

// calm tells whether the driver may stand back from a rank that calls often: nobody has missed it lately, or it would take the only
// processor from that rank; and neither does output wait for room, nor anything to be tried again.
func (w *World) calm() bool {
	c := w.cards[networkCard]
	return c != nil && !w.settings.tuning.NoStandBack && !(c.server != nil && c.server.Pending()) && !w.retrying.Load() &&
		(runtime.GOMAXPROCS(0) == 1 || w.Now()-time.Duration(w.demand.last.Load()) >= calmAfter)
}

// attended counts a time between two polls, in which others had the processor, as the
// polls that would be in it.
func (w *World) attended(took time.Duration) { w.credit.Add(uint64(took / pollsApart)) }

// The driver's sleeps while there is something to retry grow from one to the other.
const (
	shortestRetry = 50 * time.Microsecond
	longestRetry  = time.Millisecond
)

// KeepProgress has progress made while this rank's program computes.
func (w *World) KeepProgress() {
	w.post.mu.Lock()
	defer w.post.mu.Unlock()
	w.drive()
}

// drive starts the driver, once. It is called with the mutex of progress.
func (w *World) drive() {
	if w.driving {
		return
	}
	w.driving = true
	if w.virtual() {
		// Time passes only while somebody waits, or in Compute, and they make progress.
		return
	}
	w.driver.Go(func() {
		channel := w.network().Channel()
		limit, standBack := shortestRetry, shortestStandBack
		others := w.attendance()
		timer := time.NewTimer(standBack)
		defer timer.Stop()
		for !w.stopped.Load() {
			switch enough, some := w.others(&others); {
			case enough:
				if !w.nap(timer, standBack, &others) {
					standBack = min(2*standBack, longestStandBack)
					continue
				}
			case some && w.calm():
				begun := w.Now()
				if !w.nap(timer, shortestStandBack, &others) && (w.Now()-begun < longestStandBack || runtime.GOMAXPROCS(0) > 1) {
					continue
				}
			}
			standBack = shortestStandBack
			ticket := channel.Prepare()
			w.leaveRings()
			if !w.post.mu.TryLock() {
				// Somebody makes progress, who may have lost the processor to this goroutine.
				channel.Finish()
				w.nap(timer, shortestStandBack, &others)
				continue
			}
			found := w.poll()
			w.post.mu.Unlock()
			if found == 0 && !w.stopped.Load() {
				limit = min(2*limit, w.settings.longestSleep)
				if w.retrying.Load() {
					limit = min(limit, longestRetry)
				}
				if limit > 2*shortestRetry && runtime.GOMAXPROCS(0) == 1 && w.othersRun() {
					limit = shortestRetry
				} else {
					channel.Sleep(ticket, limit)
				}
			} else {
				limit = shortestRetry
			}
			channel.Finish()
		}
	})
}

// others tells whether others look after the network enough, or at all. A driver that slept there as well
// would be woken by all that comes, and the runtime's own threads by it, which with many
// processes on few cores takes the processor from those waited for.
func (w *World) others(a *attendance) (enough, some bool) {
	return a.look(w.polls.Load(), w.credit.Load(), time.Now(), w.crowded && w.waiting.Load() > 0)
}

// attendance is what others have done so far.
func (w *World) attendance() attendance {
	return attendance{w.polls.Load(), w.credit.Load(), time.Now()}
}

// wakeDriver has the driver attend at once, if it stands back.
func (w *World) wakeDriver() {
	select {
	case w.doze <- struct{}{}:
	default:
	}
}

// nap waits that long, or until somebody goes to sleep who relies on the driver, and
// tells whether that is so. Of such a one polls that were made before tell nothing.
func (w *World) nap(timer *time.Timer, standBack time.Duration, others *attendance) (needed bool) {
	timer.Reset(standBack)
	select {
	case <-w.doze:
		*others = w.attendance()
		return true
	case <-timer.C:
		return false
	}
}

// othersRun lets other goroutines of this process have the processor, and tells whether one has taken it for long: drivers of other
// Worlds do not.
func (w *World) othersRun() bool {
	begun := w.Now()
	runtime.Gosched()
	return w.Now()-begun > shortestStandBack
}

// network is the device that the driver sleeps on.
func (w *World) network() verbs.Device {
	if c := w.cards[networkCard]; c != nil {
		return c.device
	}
	return w.home.device
}

// stopDriver ends the driver.
func (w *World) stopDriver() {
	w.stopped.Store(true)
	for _, c := range w.cards {
		if c != nil {
			c.device.Channel().Ring()
		}
	}
	w.driver.Wait()
}
