package progress_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The model has the steps of the package's documentation: two waits, a goroutine that tries to lock once, to poll or not, one
// that locks once, a card, and a peer that stores in memory and wakes. Each step is one atomic operation. All interleavings are
// explored. In no state may nothing be left to do while a wait has not ended.

// A mutant leaves a step out, or changes it.
type mutant int

const (
	none mutant = iota
	noCheck
	noLastPoll
	noFlag
	noSecondTry
	noPollInUnlock
	onePollInUnlock
	swapped
	clearedLate
	lateTicket
	wakeBeforeStore
	foundNotCounted
	mutants
)

var mutantNames = [mutants]string{
	"none", "no check after the announcement", "no poll after the announcement", "the last poll sets no flag", "the last poll does not try twice",
	"Unlock does not poll", "Unlock polls once at most", "Unlock takes the flag before the mutex", "a poll clears the flag after the Source", "the ticket is taken after the check",
	"a wake before the store", "what was found is not counted",
}

// A card announces what it has as long as it has something (level), or only the next event after it was armed.
type card int

const (
	level card = iota
	armed
	cards
)

// The actors, in the order of state.at. The event of the card is what wait 0 waits for, the store of the peer what wait 1 does.
const (
	waits   = 2
	other   = waits // calls TryLock
	blocker = waits + 1
	pollers = waits + 2
	device  = pollers
	peer    = pollers + 1
	actors  = pollers + 2
)

// The steps of a wait, of other, which begins with firstTry, and of blocker, which begins with lock. Device and peer count theirs.
const (
	check    = iota
	firstTry // a poll before the announcement
	announce
	ticket
	arm
	checkAgain
	lastTry
	setFlag
	checkFlag
	secondTry
	sleep
	woken
	lock
	waitForMutex
	clearFlag // the steps of a poll
	pollSource
	clearFlagLate
	loadSleepers
	wake
	unlock
	loadFlag
	tryInUnlock
	over
)

// A state is comparable: it is the key of those that have been visited.
type state struct {
	at [actors]int8
	// last: a wait is in its last poll.
	last [waits]bool
	// found: the poll that an actor is in has found something. unlocking: it is in a poll that Unlock makes. returned: what
	// its own poll returns, whatever those of Unlock find.
	found, unlocking, returned [pollers]bool
	// c is what the waits wait for. rung: the channel was woken since the ticket.
	c, rung [waits]bool
	// sleepers is the channel's.
	sleepers int8
	// held is 1 + the actor that has the mutex.
	held int8
	// wanted: a sleeper wants a poll.
	wanted bool
	// event: the card has an event that nobody has polled.
	event, armed bool
}

// wake wakes the sleepers. For a wait that has announced none it changes nothing, so that there are fewer states.
func (s *state) wake() {
	for i := range s.rung {
		at := s.at[i]
		s.rung[i] = announce < at && at <= woken || at >= clearFlag && s.last[i]
	}
}

type model struct {
	mutant mutant
	card   card
}

// next returns the states that a step of an actor leads to, none if it cannot take one.
func (m model) next(s state, actor int) []state {
	switch actor {
	case device:
		return m.device(s)
	case peer:
		return m.peer(s)
	}
	at := &s.at[actor]
	switch *at {
	case over:
		return nil
	case check:
		if *at = firstTry; s.c[actor] {
			*at = over
		}
	case firstTry, lastTry, secondTry, tryInUnlock:
		return m.try(s, actor)
	case lock:
		if *at = waitForMutex; s.held == 0 {
			s.held = int8(actor + 1)
			*at = unlock
		}
	case waitForMutex:
		if s.held != 0 {
			return nil
		}
		s.held = int8(actor + 1)
		*at = unlock
	case announce:
		s.sleepers++
		if *at = ticket; m.mutant == lateTicket {
			*at = arm
		}
	case ticket:
		s.rung[actor] = false
		if *at = arm; m.mutant == lateTicket {
			*at = lastTry
		}
	case arm:
		s.armed = m.card == armed
		if *at = checkAgain; m.mutant == noCheck {
			*at = lastTry
		}
	case checkAgain:
		switch {
		case s.c[actor]:
			s.sleepers--
			s.rung[actor] = false
			*at = over
		case m.mutant == lateTicket:
			*at = ticket
		case m.mutant == noLastPoll:
			*at = sleep
		default:
			*at = lastTry
		}
	case setFlag:
		s.wanted = true
		if *at = checkFlag; m.mutant == noSecondTry {
			*at = sleep
		}
	case checkFlag:
		if *at = secondTry; !s.wanted {
			*at = sleep
		}
	case sleep:
		if !s.rung[actor] && !(m.card == level && s.event) {
			return nil
		}
		*at = woken
	case woken:
		s.sleepers--
		s.rung[actor] = false
		*at = check
	default:
		m.poll(&s, actor)
	}
	return []state{s}
}

// try is a TryLock. It may also fail if nobody holds the mutex while a goroutine waits for it.
func (m model) try(s state, actor int) (to []state) {
	if s.held == 0 {
		to = m.locked(s, actor)
	}
	if s.held != 0 || s.at[blocker] == waitForMutex {
		to = append(to, m.refused(s, actor))
	}
	return to
}

func (m model) locked(s state, actor int) []state {
	at := &s.at[actor]
	s.held = int8(actor + 1)
	switch {
	case *at == tryInUnlock:
		s.unlocking[actor] = true
	case actor == other:
		// It polls, or does something else.
		excludes := s
		s.at[actor], excludes.at[actor] = clearFlag, unlock
		return []state{s, excludes}
	default:
		s.last[actor] = *at != firstTry
	}
	*at = clearFlag
	return []state{s}
}

func (m model) refused(s state, actor int) state {
	at := &s.at[actor]
	switch {
	case *at == tryInUnlock:
		m.polled(&s, actor)
	case actor == other:
		*at = over
	case *at == firstTry:
		*at = announce
	case *at == lastTry && m.mutant != noFlag:
		*at = setFlag
	default:
		*at = sleep
	}
	return s
}

// poll is a step of a poll, or of Unlock.
func (m model) poll(s *state, actor int) {
	at := &s.at[actor]
	switch *at {
	case clearFlag:
		s.found[actor] = false
		s.wanted = s.wanted && m.mutant == clearedLate
		*at = pollSource
	case pollSource:
		if s.event {
			s.event = false
			s.c[0], s.found[actor] = true, m.mutant != foundNotCounted
		}
		if *at = unlock; s.found[actor] {
			*at = loadSleepers
		}
		if m.mutant == clearedLate {
			*at = clearFlagLate
		}
	case clearFlagLate:
		s.wanted = false
		if *at = unlock; s.found[actor] {
			*at = loadSleepers
		}
	case loadSleepers:
		if *at = unlock; s.sleepers > 0 {
			*at = wake
		}
	case wake:
		s.wake()
		*at = unlock
	case unlock:
		s.held = 0
		if actor < waits && !s.unlocking[actor] {
			s.returned[actor] = s.found[actor]
		}
		s.found[actor] = false
		if *at = loadFlag; m.mutant == noPollInUnlock || m.mutant == onePollInUnlock && s.unlocking[actor] {
			m.polled(s, actor)
		}
	case loadFlag:
		if !s.wanted {
			m.polled(s, actor)
			return
		}
		s.wanted = m.mutant != swapped
		*at = tryInUnlock
	}
}

// polled goes on after a poll, and after those that Unlock has made.
func (m model) polled(s *state, actor int) {
	at := &s.at[actor]
	switch {
	case actor >= waits:
		*at = over
	case !s.last[actor] && s.returned[actor]:
		*at = check
	case !s.last[actor]:
		*at = announce
	case s.returned[actor]:
		*at = woken
	default:
		*at = sleep
	}
	s.unlocking[actor], s.returned[actor] = false, false
	if actor < waits {
		s.last[actor] = false
	}
}

// device has an event, once.
func (m model) device(s state) []state {
	at := &s.at[device]
	switch *at {
	case 0:
		s.event = true
	case 1:
		if s.armed {
			s.armed = false
			s.wake()
		}
	default:
		return nil
	}
	*at++
	return []state{s}
}

// peer stores what wait 1 waits for, and then wakes those who sleep.
func (m model) peer(s state) []state {
	at := &s.at[peer]
	store, load := int8(0), int8(1)
	if m.mutant == wakeBeforeStore {
		store, load = load, store
	}
	switch *at {
	case store:
		s.c[1] = true
	case load:
		if s.sleepers > 0 {
			s.wake()
		}
	default:
		return nil
	}
	*at++
	return []state{s}
}

// explore visits all states, and returns how many there are. Then it has the path to one in which a wait sleeps for ever, if
// there is one.
func (m model) explore() (states int, lost []state) {
	var first state
	if first.at[other], first.at[blocker] = firstTry, lock; m.card == level {
		// With such a card no wait needs the poll of another goroutine.
		first.at[blocker] = over
	}
	from := map[state]state{first: first}
	queue := []state{first}
	for ; len(queue) > 0; queue = queue[1:] {
		s, stuck := queue[0], true
		for actor := range actors {
			for _, to := range m.next(s, actor) {
				stuck = false
				if _, seen := from[to]; !seen {
					from[to] = s
					queue = append(queue, to)
				}
			}
		}
		if stuck && (s.at[0] != over || s.at[1] != over) {
			for ; s != first; s = from[s] {
				lost = append(lost, s)
			}
			return len(from), lost
		}
	}
	return len(from), nil
}

// No interleaving of the steps loses a wake-up, and with each of the mutants one does. With a card that announces what it has as
// long as it has something, the steps around the last poll are not needed.
func TestModel(t *testing.T) {
	for kind, mutants := range [cards][]mutant{
		level: {none, noCheck, lateTicket, wakeBeforeStore, foundNotCounted},
		armed: {none, noCheck, noLastPoll, noFlag, noSecondTry, noPollInUnlock, onePollInUnlock, swapped, clearedLate, lateTicket, wakeBeforeStore, foundNotCounted},
	} {
		for _, mutant := range mutants {
			states, lost := model{mutant, card(kind)}.explore()
			require.Equal(t, mutant != none, len(lost) > 0, "card %d, %s: %d states, the last of them %+v", kind, mutantNames[mutant], states, lost)
		}
	}
}
