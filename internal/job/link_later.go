package job

import (
	"errors"

	"github.com/onesided/rma/verbs/channel"
)

// A message whose Service cannot finish it yet, because another rank has what it needs,
// does not hold up progress: the link keeps it, and what comes behind it, in the slots of
// its inbox, and goes on when the Service can. Who sends more than there are slots waits,
// and only on this link: what overtakes does so only from within them.

// arrival is a letter that has come: its slot, and what was not served of it.
type arrival struct {
	slot   int
	memory []byte
	// ring is where it has come if the slot is inRing, copied all that has.
	ring   channel.Message
	copied []byte
}

// unserved are the messages of a link that came and were not served, in order. It belongs
// to progress.
type unserved struct {
	// try is what is left to do of the message that is put off; nil if none is. first is
	// its letter, with what is behind it.
	try   func() (done bool, err error)
	first arrival
	// behind are the letters that came after it.
	behind []arrival
}

// Later puts off the rest of the message that is served: try is called whenever progress
// is made, until it says that it is done, and with which error. Until then the payload
// stays valid, the question may be answered, and what the rank has sent later to any
// Service is not served. If the rank fails meanwhile nothing more is done. It is for a Service.
func (l *Link) Later(try func() (done bool, err error)) { l.unserved.try = try }

// InboxFull reports whether letters that wait take all receives of this link: another letter that takes one stays with
// the rank that sends it. It is for the function that a Service gives to Later, in tests of calls that find no room.
func (l *Link) InboxFull() bool {
	waiting := 0
	if l.unserved.first.slot != inRing {
		waiting++
	}
	for _, a := range l.unserved.behind {
		if a.slot != inRing {
			waiting++
		}
	}
	return waiting == linkReceives
}

// came serves a letter, or keeps it behind one that waits.
func (l *Link) came(a arrival) {
	u := &l.unserved
	if u.try == nil {
		l.take(a)
		if u.try != nil {
			l.world.engine.Retry(l.tryAgain)
		}
		return
	}
	if all, err := l.overtake(a); err != nil || all {
		l.dispose(a, err)
	} else {
		u.behind = append(u.behind, a)
	}
}

// overtake serves the messages of a letter that may be served before what waits, and
// tells whether those are all.
func (l *Link) overtake(a arrival) (all bool, err error) {
	all = true
	for memory := a.memory; len(memory) > 0; {
		m := &l.overtaking
		payload, n, err := m.decode(memory)
		if err != nil {
			return false, err
		}
		if m.overtakes() {
			if m.Kind < FirstKind {
				err = l.serve(m, payload)
			} else {
				err = l.serveAhead(m, payload)
			}
			if err != nil {
				return false, err
			}
			makeNothing(memory[:n])
		} else {
			all = false
		}
		memory = memory[n:]
	}
	return all, nil
}

// overtakes tells whether a message may be served before those that wait. An answer is
// about what this rank has asked, and so is a complaint, which comes before the answer that
// it is told with. What a Service waits for may be a rank that has failed. And it may be this
// rank, which is in a Meeting before it does what the Service waits for; a Meeting says
// nothing of what was not flushed before it.
//
// Other messages to Services wait too. A question is not answered before one that was asked
// before it, and a flush asks of all; and another Service could put off what it is given.
func (m *Message) overtakes() bool {
	switch m.Kind {
	case kindAnswer, kindRefusal, kindComplaint, kindFailed, kindRound, kindCounts, kindAbsent, kindArrive, kindRelease, kindMail, kindMailTaken, kindReady, kindFilled, kindLanded:
		return true
	}
	return m.Kind >= FirstOvertaking && !m.question
}

// serveAhead has a Service serve a message that overtakes one which is put off, and stays so.
func (l *Link) serveAhead(m *Message, payload []byte) error {
	if l.world.Failure(l.rank) != nil {
		return nil
	}
	try := l.unserved.try
	err := l.world.askService(l, m, payload)
	l.unserved.try = try
	if err != nil && !errors.Is(err, ErrMessage) {
		l.complaints.note(m.Service, 0, err)
		err = nil
	}
	return err
}

// take serves what is left of a letter whose turn it is. What it answers leaves as one.
func (l *Link) take(a arrival) {
	l.serving.Store(true)
	l.world.RaceAcquire()
	err := l.serveEach(&a)
	l.serving.Store(false)
	l.Post()
	if err == nil && l.unserved.try != nil {
		l.unserved.first = a
		_, err = l.overtake(a)
		if err == nil {
			return
		}
		l.unserved.try = nil
	}
	l.dispose(a, err)
}

// serveEach serves the messages of a letter, up to one that is put off.
func (l *Link) serveEach(a *arrival) error {
	for len(a.memory) > 0 {
		payload, n, err := l.message.decode(a.memory)
		if err != nil {
			return err
		}
		a.memory = a.memory[n:]
		if err := l.serve(&l.message, payload); err != nil {
			return err
		}
		if l.unserved.try != nil {
			break
		}
	}
	return nil
}

// dispose has a slot receive again whose message was served, or ends the link.
func (l *Link) dispose(a arrival, err error) {
	switch {
	case err != nil:
	case a.slot == inRing:
		l.ring.channel.Free(a.ring)
		l.card.rings.copies = append(l.card.rings.copies, a.copied[:cap(a.copied)])
	default:
		err = l.receive(a.slot)
	}
	if err != nil {
		l.fail(err)
	}
}

// goOn is tried whenever progress is made, and tells whether nothing waits any more.
func (l *Link) goOn() bool {
	u := &l.unserved
	if l.fault() != nil {
		// Locks of the rank are broken by now: what it did under them must not be done.
		*u = unserved{}
		return true
	}
	try := u.try
	u.try = nil
	l.world.RaceAcquire()
	done, err := try()
	switch {
	case !done:
		u.try = try
		return false
	case u.try != nil && err == nil:
		// It has put off what is left now.
		return false
	}
	// What is served may be what another goroutine sleeps for.
	l.world.engine.Wake()
	u.try = nil
	if err := l.served(err); err != nil {
		l.dispose(u.first, err)
	} else {
		l.take(u.first)
	}
	for u.try == nil && len(u.behind) > 0 && l.broken.Load() == nil {
		next := u.behind[0]
		u.behind = u.behind[:copy(u.behind, u.behind[1:])]
		l.take(next)
	}
	l.tellOwed()
	return u.try == nil
}
