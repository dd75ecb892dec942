package progress

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// The background goroutine makes progress while no other goroutine does, so that origins continue while this rank's program
// computes. A wait makes progress faster than a goroutine that sleeps in between. So the background goroutine stands back while
// others have polled enough since it last judged them. It judges them again after shortestStandBack at first, and less often
// the longer that goes on. Go's timers are no finer than shortestStandBack. When a long wait of this rank has ended, an origin
// may have to wait for LongestStandBack.
//
// A program that computes in between, but calls often, is disturbed by a background goroutine that everything wakes. It
// takes a core from a rank, and what the runtime does about its sleeps takes a part of another. So while no peer has missed it
// for calmAfter, it stands back for shortestStandBack wherever others have polled at all since it last judged them. A peer that
// waits for an answer meanwhile waits a few times that long at most, until nobody has polled for one such time. By then the
// peer has missed the background goroutine, which stands back no more.
//
// Where the program has one processor (GOMAXPROCS) it stands back whether it was missed or not. A goroutine that sleeps in a
// system call keeps that processor until the runtime notices, after 20 us to 10 ms. The rank, which calls often, waits for
// that. So a sleep is first so short that there is little to lose: after the background goroutine has found something, and when
// the runtime has interrupted a rank that computes, every 10 to 20 ms. A nap of LongestStandBack shows the latter: it did not
// end before. Sleeps grow only while no other goroutine has something to do.
const shortestStandBack = time.Millisecond

// LongestStandBack is the longest time for which the background goroutine stands back before it judges anew whether others
// poll.
const LongestStandBack = 8 * time.Millisecond

const (
	// pollsApart is the average time between two polls of a rank that waits most of the time. Some of them find something
	// and take longer.
	pollsApart = 10 * time.Microsecond
	// busyPoll is about how long a poll takes that finds something. It counts as the polls that would be in it.
	busyPoll = 8 * pollsApart
)

const (
	// What arrives later than lateAfter after a wait, the background goroutine would have found sooner than the next wait.
	// For what only completes, as a fence of ranks that compute as long as each other, that holds after shortestStandBack.
	lateAfter = 100 * time.Microsecond
	// calmAfter is for how long no peer has missed the background goroutine where it need not hurry.
	calmAfter = 10 * time.Millisecond
)

// The sleeps of the background goroutine while something is to be retried grow from one to the other.
const (
	shortestRetry = 50 * time.Microsecond
	longestRetry  = time.Millisecond
)

type background struct {
	// mu guards started, and that none starts after the end.
	mu      sync.Mutex
	started bool
	stopped atomic.Bool
	running sync.WaitGroup
	// polls counts the calls of Poll and Pause that polled or tried to, and attended the polls that would be in the times of Attended.
	polls, attended atomic.Uint64
	// endNap ends a nap.
	endNap chan struct{}
	// waiting counts the waits that poll the network, although others may have the processor for long between two of their
	// polls. waited is when the last of them ended.
	waiting atomic.Int32
	waited  atomic.Int64
	demand  demand
}

// attendance is what the background goroutine has seen of the polls of others, and of what counts as polls.
type attendance struct {
	polls, attended uint64
	since           time.Time
}

// update reports whether the polls since the last update are enough, as those of a wait are, and whether there were any. A short
// time tells nothing: a single wait may fill it. Of a wait of an oversubscribed rank any poll is enough, because others may
// have the processor for long before the next. A wait that makes none is asleep for long, and so may this goroutine be.
func (a *attendance) update(polls, attended uint64, now time.Time, oversubscribed bool) (enough, some bool) {
	passed := now.Sub(a.since)
	if passed < shortestStandBack {
		return oversubscribed, oversubscribed
	}
	made := polls - a.polls
	grown := made + attended - a.attended
	*a = attendance{polls, attended, now}
	return made > 0 && (grown >= uint64(passed/pollsApart) || oversubscribed), made > 0
}

// A demand says whether peers need the background goroutine: one of them waits for what this rank serves, or sends no more
// before. It is guarded by the mutex of the Engine, except for last.
type demand struct {
	// urgent counts what peers wait for, completing that for whose completion only they wait. Of these, served and
	// completed are in last.
	urgent, served, completing, completed uint64
	// last is when something was served of that while no call waited here, nor had for lateAfter.
	last atomic.Int64
}

// update judges what the last poll has served.
func (d *demand) update(e *Engine) {
	if d.urgent == d.served && d.completing == d.completed {
		return
	}
	late := lateAfter
	if d.urgent == d.served {
		late = shortestStandBack
	}
	d.served, d.completed = d.urgent, d.completing
	if now := e.config.Now(); e.background.waiting.Load() == 0 && now-time.Duration(e.background.waited.Load()) >= late {
		d.last.Store(int64(now))
	}
}

// Urgent says that a peer waits for what a Source has just done. It is called with the mutex.
func (e *Engine) Urgent() { e.background.demand.urgent++ }

// Completing says that a peer waits for the completion of what a Source has just received, and for nothing else. It is called
// with the mutex.
func (e *Engine) Completing() { e.background.demand.completing++ }

// Demand returns how often Urgent and Completing were called. It is called with the mutex.
func (e *Engine) Demand() (urgent, completing uint64) {
	return e.background.demand.urgent, e.background.demand.completing
}

// Attended says that a caller which polls was kept from it for some time, by other ranks or by its own work. The time counts
// as the polls that would be in it.
func (e *Engine) Attended(took time.Duration) {
	e.background.attended.Add(uint64(took / pollsApart))
}

// apart reports whether what comes over the network does not wake a wait.
func (e *Engine) apart() bool {
	return e.config.Network != nil && e.config.Network != e.config.Home
}

// count has the background goroutine know that the wait polls the network.
func (w *Waiter) count() {
	if !w.counted && w.engine.config.Network != nil {
		w.counted = true
		w.engine.background.waiting.Add(1)
	}
}

// uncount has the background goroutine poll the network again.
func (w *Waiter) uncount() {
	if w.counted {
		w.counted = false
		e := w.engine
		e.background.waited.Store(int64(e.config.Now()))
		e.background.waiting.Add(-1)
	}
}

// WakeBackground ends a nap of the background goroutine.
func (e *Engine) WakeBackground() {
	select {
	case e.background.endNap <- struct{}{}:
	default:
	}
}

// calm reports whether the background goroutine may stand back from a rank that calls often. Then no peer has missed it lately,
// or it would take the only processor from that rank. Nor does output wait for room, nor is anything to be retried.
func (e *Engine) calm() bool {
	return e.config.Network != nil && !e.config.NoStandBack && !(e.config.Pending != nil && e.config.Pending()) && !e.retrying() &&
		(runtime.GOMAXPROCS(0) == 1 || e.config.Now()-time.Duration(e.background.demand.last.Load()) >= calmAfter)
}

// attendance returns what others have done so far.
func (e *Engine) attendance() attendance {
	return attendance{e.background.polls.Load(), e.background.attended.Load(), time.Now()}
}

// others reports whether others poll the network enough, or at all. A goroutine that slept there as well would be woken by
// everything that comes, and so would the runtime's own threads. With many processes on few cores that takes the processor
// from those waited for.
func (e *Engine) others(a *attendance) (enough, some bool) {
	b := &e.background
	return a.update(b.polls.Load(), b.attended.Load(), time.Now(), e.limits.Load().Oversubscribed && b.waiting.Load() > 0)
}

// nap waits for standBack, or until a wait goes to sleep that relies on the background goroutine, and reports whether that is
// so. The polls that such a wait made before tell nothing.
func (e *Engine) nap(timer *time.Timer, standBack time.Duration, others *attendance) (needed bool) {
	timer.Reset(standBack)
	select {
	case <-e.background.endNap:
		*others = e.attendance()
		return true
	case <-timer.C:
		return false
	}
}

// othersRun lets other goroutines of this process have the processor, and reports whether one has taken it for long.
// Background goroutines of other Engines do not.
func (e *Engine) othersRun() bool {
	begun := e.config.Now()
	runtime.Gosched()
	return e.config.Now()-begun > shortestStandBack
}

// StartBackground has progress made also while no call polls. It starts the background goroutine once. In virtual time there
// is none: time passes only while somebody waits, or in Compute, and both make progress.
func (e *Engine) StartBackground() {
	b := &e.background
	if e.config.Charger != nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.started && !b.stopped.Load() {
		b.started = true
		b.running.Go(e.runBackground)
	}
}

func (e *Engine) runBackground() {
	channel := e.config.Network
	if channel == nil {
		channel = e.config.Home
	}
	limit, standBack := shortestRetry, shortestStandBack
	others := e.attendance()
	timer := time.NewTimer(standBack)
	defer timer.Stop()
	for !e.background.stopped.Load() {
		switch enough, some := e.others(&others); {
		case enough:
			if !e.nap(timer, standBack, &others) {
				standBack = min(2*standBack, LongestStandBack)
				continue
			}
		case some && e.calm():
			begun := e.config.Now()
			if !e.nap(timer, shortestStandBack, &others) && (e.config.Now()-begun < LongestStandBack || runtime.GOMAXPROCS(0) > 1) {
				continue
			}
		}
		standBack = shortestStandBack
		ticket := channel.Prepare()
		e.beforeSleep()
		if !e.mu.TryLock() {
			// Another goroutine makes progress, which may have lost the processor to this one. After the nap this one
			// announces and polls anew, so it needs no poll of the other.
			channel.Finish()
			e.nap(timer, shortestStandBack, &others)
			continue
		}
		found := e.poll()
		e.Unlock()
		if found == 0 && !e.background.stopped.Load() {
			limit = min(2*limit, e.limits.Load().LongestSleep)
			if e.retrying() {
				limit = min(limit, longestRetry)
			}
			if limit > 2*shortestRetry && runtime.GOMAXPROCS(0) == 1 && e.othersRun() {
				limit = shortestRetry
			} else {
				channel.Sleep(ticket, limit)
			}
		} else {
			limit = shortestRetry
		}
		channel.Finish()
	}
}

// close ends the background goroutine.
func (b *background) close(e *Engine) {
	b.mu.Lock()
	b.stopped.Store(true)
	b.mu.Unlock()
	// After stopped: the goroutine loads that after Prepare, and after a nap.
	e.WakeAll()
	e.WakeBackground()
	b.running.Wait()
}
