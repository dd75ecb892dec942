package world

// A message whose Service cannot finish it yet, because another rank has what it needs,
// does not hold up progress: the link keeps it, and what comes behind it, in the slots of
// its inbox, and goes on when the Service can. Who sends more than there are slots waits,
// and only on this link.

// unserved are the messages of a link that came and were not served, in order. It belongs
// to progress.
type unserved struct {
	// try is what is left to do of the message first; nil if none is begun.
	try   func() (done bool, err error)
	first letter
	// behind are those that came after it.
	behind []letter
}

// Later puts off the rest of the message that is served: try is called whenever progress
// is made, until it says that it is done, and with which error. Until then the payload
// stays valid, the question may be answered, and what the rank has sent later is not
// served. If the rank fails meanwhile nothing more is done. It is for a Service.
func (l *Link) Later(try func() (done bool, err error)) { l.unserved.try = try }

// came serves a message, or keeps it behind those that wait.
func (l *Link) came(a letter) {
	u := &l.unserved
	if u.try == nil {
		l.take(a)
		if u.try != nil {
			l.world.Retry(l.goOn)
		}
		return
	}
	m, message := &l.overtaking, l.letterIn(a)
	if m.decode(message) != nil || !m.overtakes() {
		u.behind = append(u.behind, a)
		return
	}
	l.dispose(a, l.serve(m, message))
}

// overtakes tells whether a message may be served before those that wait. An answer is
// about what this rank has asked. And what a Service waits for may be a rank that has
// failed.
func (m *Message) overtakes() bool {
	return m.Kind == kindAnswer || m.Kind == kindRefusal || m.Kind == kindFailed
}

func (l *Link) letterIn(a letter) []byte { return l.slotMemory(a.slot)[:a.length] }

// take serves a message whose turn it is.
func (l *Link) take(a letter) {
	m, message := &l.message, l.letterIn(a)
	err := m.decode(message)
	if err == nil {
		err = l.serve(m, message)
	}
	if err == nil && l.unserved.try != nil {
		l.unserved.first = a
		return
	}
	l.dispose(a, err)
}

// dispose has a slot receive again whose message was served, or ends the link.
func (l *Link) dispose(a letter, err error) {
	if err == nil {
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
	done, err := u.try()
	if !done {
		return false
	}
	// What is served may be what another goroutine sleeps for.
	l.world.channel.Ring()
	u.try = nil
	l.dispose(u.first, l.served(err))
	for u.try == nil && len(u.behind) > 0 && l.broken.Load() == nil {
		next := u.behind[0]
		u.behind = u.behind[:copy(u.behind, u.behind[1:])]
		l.take(next)
	}
	return u.try == nil
}
