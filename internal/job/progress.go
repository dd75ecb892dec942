package job

import (
	"runtime"
	"time"

	"github.com/onesided/rma/internal/progress"
)

const (
	// A round of spinning is spinRound looks and one poll; a look costs one or
	// two nanoseconds. From the second round on it is fewer looks that take as
	// long, because the processor relaxes between them.
	spinRound    = 500
	relaxedRound = 50
	lookTime     = 2 * time.Nanosecond
	// pollTime is about what a poll of a network card takes. Where there are ranks
	// that are mapped too, a round is mixedLooks and one poll.
	pollTime = 500 * time.Nanosecond
	// anotherLook is about what each further look of one takes that dwells (verbs.Server).
	anotherLook = 330 * time.Nanosecond
	mixedLooks  = 30
	// mostYields is how many there are between spinning and sleeping, for ranks that share
	// a core.
	mostYields = 20
)

// progressConfig is that of the rank's engine.
func (e *endpoint) progressConfig() progress.Config {
	config := progress.Config{
		Home: e.home.device.Channel(), Now: e.home.device.Now, Charger: e.charger, NoStandBack: e.settings.tuning.NoStandBack,
		Limits: progress.Limits{Yields: mostYields, Yield: runtime.Gosched, LongestSleep: e.settings.longestSleep},
	}
	if network := e.cards[networkCard]; network != nil {
		config.Network = network.device.Channel()
		config.Still = network.still
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
	w.oversubscribed, w.rooted = oversubscribed, rooted
	w.changeLimits(func(l *progress.Limits) {
		l.Oversubscribed = oversubscribed
		network := w.cards[networkCard]
		if network == nil {
			l.SpinIterations, l.RelaxedIterations = spinRound, relaxedRound
			if !oversubscribed {
				l.SpinRounds = int(w.home.attributes.Spin / (spinRound * lookTime))
			}
			return
		}
		// A look without a poll sees only what ranks that are mapped have done.
		l.SpinIterations, l.RelaxedIterations = 0, 0
		mixed := w.mapsOthers()
		if mixed {
			l.SpinIterations = mixedLooks
		}
		took := pollTime
		if network.server != nil {
			looks := network.server.Dwell(!mixed && !oversubscribed)
			took += time.Duration(looks-1) * anotherLook
		}
		switch {
		case oversubscribed:
			// A rank that waits gives the core away at once.
			network.rings = nil
		case network.attributes.Virtual && network.rings != nil:
			l.SpinRounds = network.rings.rounds
		default:
			l.SpinRounds = int(network.attributes.Spin / took)
		}
	})
}

// registerSources registers what makes progress, in the order in which a poll looks at it. What follows the cards is done after
// what has come of them.
func (w *World) registerSources() {
	r := w.engine.Register
	r(progress.SourceFunc(w.pollNotices))
	for _, c := range w.cards {
		if c != nil {
			r(cardSource{w, c})
		}
	}
	r(progress.SourceFunc(w.pollDialing))
	r(progress.SourceFunc(w.pollEnding))
	r(progress.SourceFunc(w.pollFallen))
}

// pollNotices makes known what this rank was told of failures. The links that are ending by now are due in this poll.
func (w *World) pollNotices(int) int {
	w.due = len(w.ending)
	w.readObituaries()
	return 0
}

// pollDialing begins to use the links that have been made.
func (w *World) pollDialing(int) (found int) {
	if len(w.dialing) > 0 {
		found = w.rise()
	}
	return found
}

// pollEnding records the failures of links that have ended, and passes failures on.
func (w *World) pollEnding(before int) int {
	if w.due > 0 {
		w.endLinks(w.due, before == 0)
	}
	if w.news.some.Load() {
		w.passOn()
	}
	return 0
}

// pollFallen records the ends of cards after what has come of them, and frees links that were ended.
func (w *World) pollFallen(before int) int {
	if before == 0 && w.unseen.Load() {
		w.seeLost()
	}
	if w.fallen.Load() {
		w.closeFallen()
	}
	return 0
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
	if o := c.origins.Load(); o != nil && o.untidy.Load() {
		o.tidy()
	}
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

// BeforeSleep has nobody write to rings any more, when this rank is about to sleep.
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

// Poll does whatever protocol work can be done now and returns how much was found.
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
