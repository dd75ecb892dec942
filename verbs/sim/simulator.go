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
	// dead are the ranks that were killed. counted are the faults that wait for the number
	// of an event, which for the first of them is nextCounted; afflictions those of
	// processors.
	dead      map[string]end
	faultLane uint32
	// faulty: something was injected. Until then no card is looked at for faults.
	faulty  bool
	counted []*Fault
	// highest is the one of all faults that names the highest rank.
	highest     *Fault
	nextCounted uint64
	afflictions []affliction

	tasks     []*task
	live      int
	runnable  ring[*task]
	deadlines deadlines
	running   bool
	// current is the task that has the turn, nil while the simulator has it, or while
	// nothing runs. Who calls a device then is outside, all of them with one clock.
	current *task
	// settling: the task that has given the turn back wants to be settled for.
	settling  bool
	outside   time.Duration
	unwinding bool
	// patience is how long tasks may nap without an event, active when there last was
	// one, or a task that was busy.
	patience, active time.Duration
	// idle are outsiders who sleep because there is no event: they wait in real time.
	idlers sync.Cond
	idle   int
}

var simulators atomic.Uint64

// New makes a job without ranks. The seed decides the order of what happens at the same
// time, and the keys of memory regions.
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
		// None waits.
		nextCounted: maxEvent,
	}
	s.faultLane = s.lane()
	s.deadlines.seed = seed
	s.idlers.L = &s.mu
	return s, nil
}

// Profile is what New was given.
func (s *Simulator) Profile() Profile { return s.profile }

// Events is how many events have happened.
func (s *Simulator) Events() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken
}

// Trace has report called with everything that the cards do from now on, in the order in
// which it happens, nil to end that. It must not call the simulator or its devices.
func (s *Simulator) Trace(report func(Event)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trace = report
}

// Patience has Run take it for a deadlock when for that long nothing happens but that
// tasks' sleeps end at their limits, whereupon they sleep again. Zero, as at first, is for
// ever.
func (s *Simulator) Patience(limit time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.patience = max(limit, 0)
}

// exhausted tells whether the patience is.
func (s *Simulator) exhausted() bool { return s.patience > 0 && s.now-s.active > s.patience }

// lane numbers a new lane.
func (s *Simulator) lane() uint32 {
	s.lastLane++
	return s.lastLane
}

// schedule plans an event, at the earliest now.
func (s *Simulator) schedule(at time.Duration, lane uint32, k kind) *event {
	if s.idle > 0 {
		s.idlers.Broadcast()
	}
	return s.events.add(max(at, s.now), lane, k)
}

// due tells whether something is to happen, at a time at the latest.
func (s *Simulator) due(limit time.Duration) bool {
	event, some := s.events.next()
	deadline, waits := s.deadlines.next()
	return some && event <= limit || waits && deadline <= limit
}

// step lets what comes first happen, unless it comes after limit: an event, or the end of
// a task's wait. It tells whether anything has.
func (s *Simulator) step(limit time.Duration) bool {
	at, some := s.events.next()
	if deadline, waits := s.deadlines.next(); waits && (!some || deadline < at) {
		if deadline > limit {
			return false
		}
		s.now = max(s.now, deadline)
		t := s.tasks[s.deadlines.heap[0].task]
		if t.bell == nil {
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

// happen carries out an event.
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
	case evAnswer:
		e.pair.answerArmed = false
		e.pair.armAnswers()
	case evAcknowledged:
		if !e.pair.device.hold(e) {
			e.pair.acknowledged(e)
		}
	case evResume:
		e.pair.resume(e.epoch)
	case evKnock:
		e.what.(*connectionRequest).arrive(e)
	case evAccepted:
		if !e.pair.device.hold(e) {
			e.pair.accepted(e.what.(*queuePair))
		}
	case evRefused, evParted:
		if !e.pair.device.hold(e) {
			e.pair.fail(e.what.(error))
		}
	case evDeath:
		e.what.(*watch).tell()
	case evRing:
		e.what.(*Device).bell.ring()
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

// local is the clock of whoever calls.
func (s *Simulator) local() *time.Duration {
	clock := &s.outside
	if s.current != nil {
		clock = &s.current.local
	}
	*clock = max(*clock, s.now)
	return clock
}

// settle brings the simulator's clock to that of whoever calls, so that it sees
// everything that has happened by then, and nothing later. Other tasks have their turn
// before, as far as they are behind. For a task what is due happens in the goroutine of
// Run: thousands of stacks that are deep now and then would not stay in the cache.
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

// address is as long for each rank of each job, so that what carries it takes the same time.
func (s *Simulator) address(rank int) string { return fmt.Sprintf("sim:%08x:%08x", s.id, rank) }
