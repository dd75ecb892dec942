package sim

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/onesided/rma/verbs"
)

// A Simulator is one job: its clock, its events and the cards of its ranks.
type Simulator struct {
	profile Profile
	// attributes are those of each device.
	attributes verbs.Attributes
	id         uint64

	// mu guards everything. Tasks run one at a time and find it free.
	mu       sync.Mutex
	now      time.Duration
	events   schedule
	taken    uint64
	random   *rand.Rand
	trace    func(Event)
	devices  []*Device
	open     map[string]*Device
	lastLane uint32
	// dead are the killed ranks. counted are the faults that wait for the number of an event, the first of them for
	// nextCounted. processorFaults are the faults of processors.
	dead      map[string]end
	faultLane uint32
	// faulty: a fault was injected. Until then no card is checked for faults.
	faulty  bool
	counted []*Fault
	// highest is the injected fault that names the highest rank.
	highest         *Fault
	nextCounted     uint64
	processorFaults []processorFault

	tasks     []*task
	live      int
	runnable  ring[*task]
	deadlines deadlines
	running   bool
	// current is the task that has the turn. It is nil while the simulator has it, or nothing runs. Callers of devices
	// are then outside, all of them with one clock.
	current *task
	// settling: the task that has given the turn back is to be settled for.
	settling  bool
	outside   time.Duration
	unwinding bool
	// patience is how long tasks may nap without an event. active is the time of the last event, or of a task that was
	// busy.
	patience, active time.Duration
	// idle are callers outside that sleep because there is no event. They wait in real time.
	idlers sync.Cond
	idle   int
}

var simulators atomic.Uint64

// New returns a job without ranks. The seed determines the order of events at the same time, and the keys of memory
// regions.
func New(profile Profile, seed uint64) (*Simulator, error) {
	if err := profile.check(); err != nil {
		return nil, err
	}
	s := &Simulator{
		profile: profile,
		attributes: verbs.Attributes{
			Name: "sim:" + profile.Name, MaxInline: profile.MaxInline, MaxSegments: maxSegments, MaxMessage: maxMessage,
			CoherentAtomics: profile.CoherentAtomics, CardAtomics: true, OrderedWrites: !profile.UnorderedWrites, Virtual: true,
		},
		id:     simulators.Add(1),
		events: schedule{seed: seed},
		random: rand.New(rand.NewPCG(seed, 1)),
		open:   make(map[string]*Device),
		dead:   make(map[string]end),
		// No fault waits.
		nextCounted: maxEvent,
	}
	s.faultLane = s.lane()
	s.deadlines.seed = seed
	s.idlers.L = &s.mu
	return s, nil
}

// Profile returns the profile of New.
func (s *Simulator) Profile() Profile { return s.profile }

// Events returns the number of events that have happened.
func (s *Simulator) Events() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken
}

// Trace makes report be called with everything that the cards do from now on, in the order in which it happens. Nil
// ends that. report must not call the simulator or its devices.
func (s *Simulator) Trace(report func(Event)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trace = report
}

// Patience sets the time after which Run returns a DeadlockError while nothing happens but sleeps that end at their
// limits. Zero, the default, means for ever.
func (s *Simulator) Patience(limit time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.patience = max(limit, 0)
}

// exhausted reports whether the patience is over.
func (s *Simulator) exhausted() bool { return s.patience > 0 && s.now-s.active > s.patience }

// lane returns the number of a new lane.
func (s *Simulator) lane() uint32 {
	s.lastLane++
	return s.lastLane
}

// schedule schedules an event, now at the earliest.
func (s *Simulator) schedule(at time.Duration, lane uint32, k kind) *event {
	if s.idle > 0 {
		s.idlers.Broadcast()
	}
	return s.events.add(max(at, s.now), lane, k)
}

// due reports whether something is to happen at limit or before.
func (s *Simulator) due(limit time.Duration) bool {
	event, some := s.events.next()
	deadline, waits := s.deadlines.next()
	return some && event <= limit || waits && deadline <= limit
}

// step makes the first event happen, or the first wait of a task end, unless it is after limit. It reports whether
// anything has happened.
func (s *Simulator) step(limit time.Duration) bool {
	at, some := s.events.next()
	if deadline, waits := s.deadlines.next(); waits && (!some || deadline < at) {
		if deadline > limit {
			return false
		}
		s.now = max(s.now, deadline)
		t := s.tasks[s.deadlines.heap[0].task]
		if t.channel == nil {
			s.active = s.now
		}
		s.wake(t)
		return true
	}
	if !some || at > limit {
		return false
	}
	e, slot := s.events.take()
	s.now = max(s.now, at)
	s.active = s.now
	s.taken++
	s.happen(e)
	s.events.giveBack(slot)
	if s.taken >= s.nextCounted {
		s.strikeCounted()
	}
	return true
}

// happen executes an event.
func (s *Simulator) happen(e *event) {
	switch e.kind {
	case evLaunch:
		e.pair.armed = false
		e.pair.arm()
	case evPort:
		d := e.what.(*Device)
		d.out.armed = false
		d.serve()
	case evArrive:
		if d := e.pair.peer.device; !d.hold(e) {
			d.come(e)
		}
	case evReturn:
		if d := e.pair.device; !d.hold(e) {
			d.come(e)
		}
	case evEnter:
		e.what.(*Device).enter()
	case evPlaced:
		e.pair.placed(e)
	case evReturned:
		e.pair.returned(e)
	case evResponse:
		e.pair.responseArmed = false
		e.pair.armResponses()
	case evAcknowledged:
		if !e.pair.device.hold(e) {
			e.pair.acknowledged(e)
		}
	case evResume:
		e.pair.resume(e.epoch)
	case evConnect:
		e.what.(*connectionRequest).arrive(e)
	case evAccepted:
		if !e.pair.device.hold(e) {
			e.pair.accepted(e.what.(*queuePair))
		}
	case evRejected, evParted:
		if !e.pair.device.hold(e) {
			e.pair.fail(e.what.(error))
		}
	case evDeath:
		e.what.(*watch).notify()
	case evRing:
		e.what.(*Device).channel.wake()
	case evFault:
		s.strike(e.what.(*Fault))
	case evHealed:
		s.reportFault(Healed, e.what.(*Fault))
	case evRelease:
		e.what.(*Device).release()
	case evGiveUp:
		e.pair.giveUp()
	case evExhausted:
		e.pair.inform(e.number, verbs.StatusRetryExceeded)
	}
}

// local returns the clock of the caller.
func (s *Simulator) local() *time.Duration {
	clock := &s.outside
	if s.current != nil {
		clock = &s.current.local
	}
	*clock = max(*clock, s.now)
	return clock
}

// settle brings the simulator's clock to the caller's. The caller then sees everything that has happened by then, and
// nothing later. Tasks whose clocks are behind have their turn before. For a task, events happen in the goroutine of
// Run: thousands of stacks that are occasionally deep would not stay in the cache.
func (s *Simulator) settle() {
	local := *s.local()
	if s.current != nil && !s.unwinding {
		if s.runnable.count > 0 || s.due(local) {
			s.settling = true
			s.pause(s.current)
			return
		}
	}
	for s.step(local) {
	}
	s.now = max(s.now, local)
}

// address returns an address of the same length for each rank of each job, so that messages with an address take the
// same time.
func (s *Simulator) address(rank int) string { return fmt.Sprintf("sim:%08x:%08x", s.id, rank) }
