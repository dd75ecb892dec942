package job

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/internal/registration"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/channel"
)

// MaxPayload is the longest payload of a message, in bytes.
func (l *Link) MaxPayload() int { return l.world.linkLetter - channel.StampBytes - longestHeader }

// Tell sends a message, after everything before it on this link, but for reads, unless
// it says AfterReads. payload is the caller's again at return. Like all that has no
// context it may wait for room, as long as the rank may be silent.
func (l *Link) Tell(m *Message, payload []byte) error {
	return l.TellWithin(context.Background(), m, payload)
}

// TellWithin is Tell that waits for room no longer than ctx lasts.
func (l *Link) TellWithin(ctx context.Context, m *Message, payload []byte) error {
	if err := l.enter(ctx, false); err != nil {
		return err
	}
	return l.tell(m, payload)
}

// tryTell is Tell by one who comes again if there is no room.
func (l *Link) tryTell(m *Message, payload []byte) (told bool, err error) {
	l.mu.Lock()
	if err = l.fault(); err == nil && l.room(false) {
		return true, l.tell(m, payload)
	}
	if err == nil {
		l.post(true)
	}
	l.mu.Unlock()
	return false, err
}

// tell is Tell with the mutex, where there is room. It gives the mutex back.
func (l *Link) tell(m *Message, payload []byte) error {
	l.told = l.told || m.awaited()
	at, err := l.say(m, payload)
	if err == nil && m.Kind >= FirstKind && m.Kind < FirstOvertaking {
		l.lastTold, l.lastToldAt = l.sequence, at
	}
	l.leave(m.bytes(len(payload)))
	return err
}

// AskFor is Ask with one who takes the answer, of whatever length, unless this returns an
// error.
func (l *Link) AskFor(ctx context.Context, m *Message, payload []byte, to Receiver) error {
	if err := l.enter(ctx, true); err != nil {
		return err
	}
	err := l.ask(m, payload, nil)
	if err == nil {
		l.expected[(l.asked-1)%mostAsked].receiver = to
	}
	l.leave(m.bytes(len(payload)))
	return err
}

// Ask sends a message that will be answered. The answer, which has the length of
// result, is in result by the time that Flush or Settle returns.
func (l *Link) Ask(ctx context.Context, m *Message, payload, result []byte) error {
	if err := l.enter(ctx, true); err != nil {
		return err
	}
	err := l.ask(m, payload, result)
	l.leave(m.bytes(len(payload)))
	return err
}

func (l *Link) ask(m *Message, payload, result []byte) error {
	question := *m
	question.question = true
	if _, err := l.say(&question, payload); err != nil {
		return err
	}
	l.expect(result)
	return nil
}

// expect notes that the last message is a question. Where the answer will not tell that the
// card needs nothing any more of what came before, the question's own completion does.
func (l *Link) expect(result []byte) {
	if l.card.attributes.Resends {
		l.signal()
	}
	if l.expected == nil {
		l.expected = new([mostAsked]expectation)
	}
	l.expected[l.asked%mostAsked] = expectation{into: result, sequence: l.sequence, lastRead: l.lastRead}
	l.asked++
	l.lastTold = 0
}

// askFlush asks to be told when all before it has been served, if anything was told
// since that was last asked. It is called with the mutex.
func (l *Link) askFlush() error {
	if !l.told {
		return nil
	}
	if l.lastTold != l.sequence || l.ring.stamped == len(l.requests) {
		err := l.ask(&Message{Kind: kindFlush}, nil, nil)
		l.told = err != nil
		return err
	}
	// What was told last has not left: it asks itself.
	makeQuestion(l.requests[len(l.requests)-1].Segments[0].Memory[l.lastToldAt:])
	l.expect(nil)
	l.told = false
	return nil
}

// Answer answers the question that is served. It is for a Service, which answers every
// question while it serves it. What was no question has no answer.
func (l *Link) Answer(payload []byte) { l.answerBy(kindAnswer, payload) }

const maxRefusal = 200

// Refuse answers a question by an error. It is for a Service.
func (l *Link) Refuse(err error) { l.answerBy(kindRefusal, refusalText(err)) }

// Complain tells the rank of an error of a message to a Service, beside its answer: its next
// Flush for the Service has it. It is for that Service.
func (l *Link) Complain(service uint32, err error) {
	l.Reply(&Message{Kind: kindComplaint, Service: service}, refusalText(err))
}

func refusalText(err error) []byte {
	text := err.Error()
	return []byte(text[:min(len(text), maxRefusal)])
}

// Costs are those of what goes over the link.
func (l *Link) Costs() verbs.Costs { return l.card.device.Costs() }

func (l *Link) answerBy(kind uint8, payload []byte) {
	if l.message.question {
		l.message.question = false
		l.Reply(&Message{Kind: kind, Service: l.message.Service}, payload)
	}
}

// Reply is Tell for a Service: it does not wait for room. What a rank asks bounds
// how many replies it can cause.
func (l *Link) Reply(m *Message, payload []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken.Load() != nil {
		// What it took nobody would give back.
		return
	}
	l.told = l.told || m.awaited()
	if owed := len(l.requests) - l.head; owed > mostOwed+2*l.world.size {
		l.fail(fmt.Errorf("%w: rank %d takes none of %d replies", ErrMessage, l.rank, owed))
		return
	}
	if _, err := l.say(m, payload); err != nil {
		l.fail(err)
		return
	}
	if !l.serving.Load() {
		l.post(false)
	}
}

// enter takes the mutex when there is room for a request, and for a question.
func (l *Link) enter(ctx context.Context, question bool) error {
	l.mu.Lock()
	if l.broken.Load() == nil && l.room(question) {
		return nil
	}
	wait := l.world.NewWaiter()
	defer wait.Finish()
	wait.For(l.rank)
	for {
		if err := l.fault(); err != nil {
			l.mu.Unlock()
			return err
		}
		l.post(true)
		if l.room(question) {
			return nil
		}
		l.mu.Unlock()
		if err := wait.Pause(ctx); err != nil {
			return fmt.Errorf("waiting for room to rank %d: %w", l.rank, err)
		}
		l.mu.Lock()
	}
}

// room tells whether there is room for a request, and for a question. What has completed
// counts until it is known to have: the queue that tells of it has an end.
func (l *Link) room(question bool) bool {
	return l.sequence-l.done.Load() < mostSends && !(question && l.asked-l.answered.Load() == mostAsked)
}

// next is a request behind the others, and what its segment may point to.
func (l *Link) next(opcode verbs.Opcode) (*verbs.SendRequest, *body) {
	l.sequence++
	l.counts.requests[opcode]++
	if l.head == len(l.requests) || l.head >= mostSends {
		l.compact()
	}
	n := len(l.bodies)
	if n == cap(l.bodies) {
		// Requests keep those that they have.
		l.bodies = make([]body, n, 2*n+shortestBodies)
	}
	l.bodies = l.bodies[:n+1]
	b := &l.bodies[n]
	l.requests = append(l.requests, verbs.SendRequest{ID: l.sequence, Opcode: opcode, Segments: b.segment[:]})
	if l.sequence%signalEvery == 0 || l.expecting {
		l.signal()
	}
	if opcode >= verbs.OpRDMARead {
		l.lastRead = l.sequence
	}
	return &l.requests[len(l.requests)-1], b
}

// shortestBodies is how many there are at first.
const shortestBodies = 4

// compact gives the place of requests that have been posted to new ones. A body points to
// nothing that is not to be posted.
func (l *Link) compact() {
	n := copy(l.requests, l.requests[l.head:])
	for i := range n {
		r, b := &l.requests[i], &l.bodies[i]
		from := r.Segments[0]
		r.Segments[0] = verbs.Segment{}
		if r.Opcode == verbs.OpSend && r.Flags&verbs.Inline != 0 {
			from.Memory = b.letter[:copy(b.letter[:], from.Memory)]
		}
		b.segment[0] = from
		r.Segments = b.segment[:]
	}
	l.ring.stamped = max(l.ring.stamped-l.head, 0)
	l.requests, l.bodies, l.head = l.requests[:n], l.bodies[:n], 0
}

// say puts a message behind the others, in the letter that is the last request if that has
// room, and tells where in its letter it is.
func (l *Link) say(m *Message, payload []byte) (at int, err error) {
	bytes := len(payload) + len(m.More)
	_, header := m.layout()
	n := header + padded(bytes)
	if bytes > l.MaxPayload() {
		return 0, fmt.Errorf("world: %w: a message of %s, at most %d are allowed", ErrArgument, errtext.Count(bytes, "byte"), l.MaxPayload())
	}
	l.world.RaceRelease()
	l.counts.messages++
	held := m.AfterReads && l.lastRead > l.done.Load()
	r := l.lastLetter()
	at = channel.StampBytes
	if r != nil {
		at = len(r.Segments[0].Memory)
		if at+n > l.world.linkLetter || held && r.Flags&verbs.Fence == 0 {
			r, at = nil, channel.StampBytes
		}
	}
	var long registration.Buffer
	var scarce bool
	short := at+n <= l.shortLetter()
	if !short && (r == nil || r.Flags&verbs.Inline != 0) {
		if long, scarce, err = l.world.registry.Eager().Take(); err != nil {
			// This link may have some of what has completed.
			l.giveBack(l.done.Load())
			if long, scarce, err = l.world.registry.Eager().Take(); err != nil {
				return 0, err
			}
		}
	}
	if r == nil {
		var b *body
		r, b = l.next(verbs.OpSend)
		b.segment[0].Memory = b.letter[:channel.StampBytes]
		r.Flags |= verbs.Inline
		if held {
			r.Flags |= verbs.Fence
		}
	}
	s := &r.Segments[0]
	if long.Memory != nil {
		l.world.Copied(copy(long.Memory, s.Memory))
		*s = verbs.Segment{Memory: long.Memory, LKey: long.Key(l.card.kind)}
		r.Flags &^= verbs.Inline
		l.hold(holding{buffer: long})
		if scarce {
			l.signal()
		}
	}
	s.Memory = s.Memory[:at+n]
	m.encode(s.Memory[at:], payload)
	l.world.Copied(bytes)
	return at, nil
}

// shortLetter is how long a letter is at most that goes as inline data.
func (l *Link) shortLetter() int { return min(shortLetter, l.mostInline()) }

// mostInline is how many bytes go to the card with the request that writes or sends them: it
// need not fetch them, and their memory need not be known to it.
func (l *Link) mostInline() int {
	if l.world.settings.tuning.NoInline {
		return 0
	}
	return l.card.attributes.MaxInline
}

// lastLetter is the last request, if that is a letter which was not posted.
func (l *Link) lastLetter() *verbs.SendRequest {
	if l.ring.stamped == len(l.requests) || l.world.settings.tuning.NoCollecting {
		return nil
	}
	if r := &l.requests[len(l.requests)-1]; r.Opcode == verbs.OpSend {
		return r
	}
	return nil
}

// leave posts what is to be posted now and gives the mutex back. To write much takes as
// long as many polls: who does makes progress now and then.
func (l *Link) leave(bytes int) {
	l.bytes += bytes
	l.counts.bytes += uint64(bytes)
	l.collected++
	if l.bytes >= burstBytes || l.collected >= mostCollected || l.world.settings.tuning.NoCollecting {
		l.post(false)
	}
	poll := l.unpolled >= pollBytes
	if poll {
		l.unpolled = 0
	}
	l.mu.Unlock()
	if bytes >= burstBytes {
		l.world.engine.Attended(time.Duration(bytes/bytesAttended) * time.Microsecond)
	}
	if poll {
		l.world.engine.PollUncounted()
	}
}

// signal has the last request, which is not posted yet, signalled.
func (l *Link) signal() {
	if last := len(l.requests); l.ring.flagDue && l.ring.stamped == last {
		l.ring.flag[0].Flags |= verbs.Signalled
	} else {
		l.requests[last-1].Flags |= verbs.Signalled
	}
	l.signalled, l.expecting = l.sequence, false
}

// ExpectNext has the completion heard of the request that is sent next, so that who settles
// behind it need send nothing for that.
func (l *Link) ExpectNext() {
	l.mu.Lock()
	l.expecting = true
	l.mu.Unlock()
}

// Expect has the completion of what came before a mark heard of: that of the last request, or,
// if that has left, of the next one.
func (l *Link) Expect(m Mark) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.signalled >= m.sequence || l.done.Load() >= m.sequence:
	case l.head < len(l.requests) || l.ring.flagDue:
		l.signal()
	default:
		l.expecting = true
	}
}

// cover sees to it that somebody hears when the last request has completed: it is
// signalled, or is a question that is open, whose answer will tell that all before it was
// done. But reads are answered on a way of their own, so what follows one is signalled, and
// so is what was answered before that was known to have come.
func (l *Link) cover() error {
	done := l.done.Load()
	if l.signalled == l.sequence || done >= l.sequence || l.lastAnswerTells(done) {
		return nil
	}
	if l.head == len(l.requests) && !l.ring.flagDue {
		if _, err := l.say(&Message{Kind: kindNothing}, nil); err != nil {
			return err
		}
	}
	l.signal()
	return nil
}

// lastAnswerTells tells whether the last request is a question whose answer will come and
// tell of it.
func (l *Link) lastAnswerTells(done uint64) bool {
	if l.asked == 0 || l.card.attributes.Resends {
		return false
	}
	last := &l.expected[(l.asked-1)%mostAsked]
	return last.sequence == l.sequence && last.lastRead <= done && l.answered.Load() < l.asked
}

// post posts what is collected, the last signalled if that is asked for. It is called
// with the mutex. stuck is set before the device is asked, so that whoever makes room
// afterwards finds it.
func (l *Link) post(signalled bool) {
	if l.head == len(l.requests) && !l.ring.flagDue {
		if l.firstHeld < len(l.held) {
			l.giveBack(l.done.Load())
		}
		return
	}
	if l.mute {
		// No message could be told of later.
		l.signal()
	}
	if signalled {
		if err := l.cover(); err != nil {
			l.fail(err)
		}
	}
	l.stuck.Store(true)
	if !l.up {
		return
	}
	var err error
	for err == nil && (l.head < len(l.requests) || l.ring.flagDue) {
		err = l.postStamped()
	}
	if len(l.held) > 0 {
		l.giveBack(l.done.Load())
	}
	if err != nil {
		if errors.Is(err, verbs.ErrQueueFull) {
			return
		}
		l.fail(err)
		l.head = len(l.requests)
		l.ring.stamped, l.ring.flagDue = l.head, false
	}
	l.bytes, l.collected = 0, 0
	l.stuck.Store(false)
	if s := l.card.server; s != nil && s.Pending() {
		l.world.engine.WakeBackground()
	}
}

// postStamped stamps letters and posts what is collected, up to one that needs two requests.
func (l *Link) postStamped() error {
	if l.ring.flagDue && l.head == l.ring.stamped {
		if _, err := l.pair.PostSend(l.ring.flag[:]); err != nil {
			return err
		}
		l.ring.flagDue = false
		return nil
	}
	l.stamp()
	n, err := l.pair.PostSend(l.requests[l.head:l.ring.stamped])
	for i := l.head; i < l.head+n; i++ {
		// The device alone has the program's memory now.
		l.requests[i].Segments[0].Memory = nil
	}
	l.head += n
	return err
}

// hold has something needed until the last request has completed.
func (l *Link) hold(h holding) {
	if h.buffer.Memory == nil && !h.hold.Holds() {
		return
	}
	h.sequence = l.sequence
	l.held = append(l.held, h)
}

// giveBack lets go of what a request needed.
func (h *holding) giveBack() {
	if h.buffer.Memory != nil {
		h.buffer.Release()
	} else {
		h.hold.Release()
	}
}

// giveBack lets go of what requests held that have completed, up to done.
func (l *Link) giveBack(done uint64) {
	for ; l.firstHeld < len(l.held) && l.held[l.firstHeld].sequence <= done; l.firstHeld++ {
		h := &l.held[l.firstHeld]
		h.giveBack()
		*h = holding{}
	}
	if l.firstHeld == len(l.held) || l.firstHeld >= mostSends {
		l.held = l.held[:copy(l.held, l.held[l.firstHeld:])]
		l.firstHeld = 0
	}
}
