package job

import (
	"runtime"
	"time"

	"github.com/onesided/rma/internal/progress"
)

const (
	// spinIterations is the number of iterations of the first round of spinning. In later rounds the processor relaxes in
	// each iteration: relaxedIterations of them take as long as spinIterations.
	spinIterations    = 500
	relaxedIterations = 50
	// iterationTime is the time of an iteration of the first round.
	iterationTime = 2 * time.Nanosecond
	// pollTime is about the time of a poll of a network card.
	pollTime = 500 * time.Nanosecond
	// mixedIterations is the number of iterations of the first round if this rank has a network card and also maps the
	// memory of other ranks.
	mixedIterations = 30
	// mostYields is the number of yields between spinning and sleeping. They are for ranks that share a core.
	mostYields = 20
)

// progressConfig returns the Config of the rank's Engine.
func (e *endpoint) progressConfig() progress.Config {
	config := progress.Config{
		Home: e.home.device.Channel(), Now: e.home.device.Now, Charger: e.charger, NoStandBack: e.settings.tuning.NoStandBack,
		Limits: progress.Limits{Yields: mostYields, Yield: runtime.Gosched, LongestSleep: e.settings.longestSleep},
	}
	if network := e.cards[networkCard]; network != nil {
		config.Network = network.device.Channel()
		if network.attributes.Virtual {
			config.Still = network.still
		}
		if network.server != nil {
			config.Pending = network.server.Pending
		}
	}
	return config
}

// changeLimits changes what waits do from now on.
func (e *endpoint) changeLimits(change func(l *progress.Limits)) {
	l := e.engine.Limits()
	change(&l)
	e.engine.SetLimits(l)
}

// setOversubscribed sets the limits of waits to suit the number of ranks of the job that share this rank's cores.
func (w *World) setOversubscribed(oversubscribed, rooted bool) {
	w.rooted = rooted
	w.changeLimits(func(l *progress.Limits) {
		l.Oversubscribed = oversubscribed
		network := w.cards[networkCard]
		if network == nil {
			l.SpinIterations, l.RelaxedIterations = spinIterations, relaxedIterations
			if !oversubscribed {
				l.SpinRounds = int(w.home.attributes.Spin / (spinIterations * iterationTime))
			}
			return
		}
		// Without a poll a wait sees only what ranks have done whose memory this one maps.
		l.SpinIterations, l.RelaxedIterations = 0, 0
		if w.mapsOthers() {
			l.SpinIterations = mixedIterations
		}
		switch {
		case oversubscribed:
			// A rank that waits yields its core at once.
			network.rings = nil
		case network.attributes.Virtual && network.rings != nil:
			l.SpinRounds = network.rings.rounds
		default:
			l.SpinRounds = int(network.attributes.Spin / pollTime)
		}
	})
}

// registerSources registers what makes progress, in the order in which a poll polls it. Sources after the cards handle what
// the cards have found.
func (w *World) registerSources() {
	r := w.engine.Register
	r(progress.SourceFunc(w.pollNotices))
	for _, c := range w.cards {
		if c != nil {
			r(cardSource{w, c})
		}
	}
	r(progress.SourceFunc(w.pollLinks))
}

// pollNotices makes known what this rank was told of failures. The links that are ending by now are due in this poll.
func (w *World) pollNotices(int) int {
	w.due = len(w.ending)
	w.readObituaries()
	return 0
}

// pollLinks begins to use links that have been made, records the failures of links that have ended and passes them on, and
// frees links that were ended. It records the ends of cards in a poll that has found nothing else, after what has come of them.
func (w *World) pollLinks(before int) (found int) {
	if len(w.dialing) > 0 {
		found = w.rise()
	}
	quiet := before+found == 0
	if w.due > 0 {
		w.endLinks(w.due, quiet)
	}
	if w.news.some.Load() {
		w.passOn()
	}
	if quiet && w.unseen.Load() {
		w.seeLost()
	}
	if w.fallen.Load() {
		w.closeFallen()
	}
	return found
}

// A cardSource is a card as a source of progress.
type cardSource struct {
	world *World
	*card
}

// Poll accepts connections, files completions and takes messages.
func (s cardSource) Poll(int) int {
	w, c := s.world, s.card
	n := c.device.PollConnections(w.callers[:])
	if n > 0 {
		for _, caller := range w.callers[:n] {
			w.accept(c, caller)
		}
		w.engine.Urgent()
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
	c.memory.Tidy()
	if c.server != nil {
		if activity := c.server.Activity(); activity != c.activity {
			c.activity = activity
			n++
			if served := c.server.Served(); served != c.served {
				c.served = served
				w.engine.Urgent()
			}
		}
	}
	return n
}

// BeforeSleep stops peers from writing to rings before this rank sleeps.
func (s cardSource) BeforeSleep() {
	if s.rings == nil || !s.rings.some.Load() {
		return
	}
	e := s.world.engine
	e.Lock()
	defer e.Unlock()
	s.tellLeft(s.rings.set.LeaveAll())
	s.rings.some.Store(false)
}

// The following methods are those of the Engine, for packages that have no other use for it.

// Poll makes progress and returns how much was found.
func (w *World) Poll() int { return w.engine.Poll() }

// Exclude calls f while no Service serves, and nothing is retried.
func (w *World) Exclude(f func()) { w.engine.Exclude(f) }

// Retry has try called whenever progress is made, until it returns true. It is for a
// Service that waits for what other ranks do to memory that they map, and which
// nothing announces.
func (w *World) Retry(try func() bool) { w.engine.Retry(try) }

// TryAgain makes progress if anything waits to be retried: for a caller who has done what
// that may wait for.
func (w *World) TryAgain() { w.engine.TryAgain() }

// KeepProgress has progress made while this rank's program computes.
func (w *World) KeepProgress() { w.engine.StartBackground() }
