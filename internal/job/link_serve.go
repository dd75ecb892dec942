package job

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/verbs"
)

// A Message goes over a Link. What its fields mean is between those who send and
// serve it.
type Message struct {
	// Kind below FirstKind is the World's own.
	Kind    uint8
	A, B    uint8
	Service uint32
	X, Y, Z uint64
	// AfterReads holds the message back until all that was read before it on the link
	// has come, which it may else overtake: who serves it may change that memory. It is
	// for Tell, and is not sent.
	AfterReads bool
	// More goes behind the payload, as a part of it. It is for Tell and Ask, is the caller's again at
	// their return, and is not sent by itself.
	More []byte

	// question: an answer is waited for.
	question bool
}

// A letter is what goes over a link as one: one message or several, each a header and a
// payload, which is followed by zeroes up to a multiple of 8 bytes.
//
// A header has 8 bytes, and 8 more for each group of fields that is not all zero. All numbers
// are little-endian:
//
//	0 Kind u8
//	1 words u8      which of the words below follow, in this order, and isQuestion
//	2 length u16    of the payload
//	4 Service u32
//
//	hasSmall: A u8, B u8, zero u16, X u32
//	hasX: X u64, where 32 bits are too few; the X of hasSmall is 0 then
//	hasY: Y u64
//	hasZ: Z u64
const (
	shortestHeader = 8
	longestHeader  = shortestHeader + 4*8
)

// A length has 16 bits.
const _ = uint16(longestLinkLetter)

// wordsAt is where a header says which words it has.
const wordsAt = 1

// headerWords are the words of a header, and whether the message is a question.
type headerWords uint8

const (
	hasSmall headerWords = 1 << iota
	hasX
	hasY
	hasZ
	isQuestion
)

// layout returns the words of the header, and its length.
func (m *Message) layout() (has headerWords, length int) {
	length = shortestHeader
	wide := m.X > 1<<32-1
	if m.A|m.B != 0 || m.X != 0 && !wide {
		has, length = hasSmall, length+8
	}
	if wide {
		has, length = has|hasX, length+8
	}
	if m.Y != 0 {
		has, length = has|hasY, length+8
	}
	if m.Z != 0 {
		has, length = has|hasZ, length+8
	}
	if m.question {
		has |= isQuestion
	}
	return has, length
}

// bytes returns the length of the message with a payload of n bytes and More, without padding.
func (m *Message) bytes(n int) int {
	_, header := m.layout()
	return header + n + len(m.More)
}

// padded returns the length that a payload of n bytes has in a letter.
func padded(n int) int { return (n + 7) &^ 7 }

// awaited tells whether a flush is to wait until the message has been served.
func (m *Message) awaited() bool {
	switch m.Kind {
	case kindAnswer, kindRefusal, kindComplaint, kindNothing, kindRing, kindMail, kindMailTaken, kindReady, kindFilled, kindLanded:
		return false
	}
	return true
}

// encode writes the message, of which into has the length.
func (m *Message) encode(into, payload []byte) {
	has, header := m.layout()
	n := header + copy(into[header:], payload)
	clear(into[n+copy(into[n:], m.More):])
	into[0], into[wordsAt] = m.Kind, byte(has)
	binary.LittleEndian.PutUint16(into[2:], uint16(len(payload)+len(m.More)))
	binary.LittleEndian.PutUint32(into[4:], m.Service)
	rest := into[shortestHeader:]
	if has&hasSmall != 0 {
		rest[0], rest[1], rest[2], rest[3] = m.A, m.B, 0, 0
		small := uint32(m.X)
		if has&hasX != 0 {
			small = 0
		}
		binary.LittleEndian.PutUint32(rest[4:], small)
		rest = rest[8:]
	}
	if has&hasX != 0 {
		binary.LittleEndian.PutUint64(rest, m.X)
		rest = rest[8:]
	}
	if has&hasY != 0 {
		binary.LittleEndian.PutUint64(rest, m.Y)
		rest = rest[8:]
	}
	if has&hasZ != 0 {
		binary.LittleEndian.PutUint64(rest, m.Z)
	}
}

// makeQuestion makes a question of an encoded message.
func makeQuestion(encoded []byte) { encoded[wordsAt] |= byte(isQuestion) }

// makeNothing replaces an encoded message by a kindNothing of the same length.
func makeNothing(encoded []byte) {
	clear(encoded)
	encoded[0] = kindNothing
	binary.LittleEndian.PutUint16(encoded[2:], uint16(len(encoded)-shortestHeader))
}

// decode reads the first message of what is left of a letter, and tells how long it is.
func (m *Message) decode(from []byte) (payload []byte, n int, err error) {
	if len(from) < shortestHeader {
		return nil, 0, fmt.Errorf("%w: %s in place of a header", ErrMessage, errtext.Count(len(from), "byte"))
	}
	if from[wordsAt] >= byte(isQuestion)<<1 {
		return nil, 0, fmt.Errorf("%w: a header with unknown words, %#x", ErrMessage, from[wordsAt])
	}
	has := headerWords(from[wordsAt])
	header := shortestHeader + 8*bits.OnesCount8(byte(has&^isQuestion))
	length := int(binary.LittleEndian.Uint16(from[2:]))
	if n = header + padded(length); n > len(from) {
		return nil, 0, fmt.Errorf("%w: a header and payload of %s where the letter has %d left", ErrMessage, errtext.Count(n, "byte"), len(from))
	}
	*m = Message{Kind: from[0], question: has&isQuestion != 0, Service: binary.LittleEndian.Uint32(from[4:])}
	rest := from[shortestHeader:header]
	if has&hasSmall != 0 {
		m.A, m.B, m.X = rest[0], rest[1], uint64(binary.LittleEndian.Uint32(rest[4:]))
		if rest[2]|rest[3] != 0 || has&hasX != 0 && m.X != 0 {
			return nil, 0, fmt.Errorf("%w: a header with bytes that must be zero", ErrMessage)
		}
		rest = rest[8:]
	}
	if has&hasX != 0 {
		m.X, rest = binary.LittleEndian.Uint64(rest), rest[8:]
	}
	if has&hasY != 0 {
		m.Y, rest = binary.LittleEndian.Uint64(rest), rest[8:]
	}
	if has&hasZ != 0 {
		m.Z = binary.LittleEndian.Uint64(rest)
	}
	return from[header:][:length:length], n, nil
}

// ErrMessage is a message that keeps no rules: the link cannot be trusted any more.
var ErrMessage = errors.New("malformed message")

// The World's kinds of messages.
const (
	// kindAnswer and kindRefusal answer a question.
	kindAnswer uint8 = iota + 1
	kindRefusal
	// kindComplaint is an error of what was sent before to Service, whose text is the
	// payload.
	kindComplaint
	// kindFlush is a question that has an empty answer.
	kindFlush
	// kindNothing asks for nothing: its completion tells that what was before it is
	// done.
	kindNothing
	// kindLeft: the sender has left the job. All that it has sent before, to other
	// ranks too, has come already. The payload is what it had come to in its meetings.
	kindLeft
	// kindVerdict: X is a call's number, Y a leaver + 1; A is 1 if that shrinks, else 0; the payload is the text.
	kindVerdict
	// kindRound: round A of meeting Service has come to number X; Y is the history, or by which
	// calls ranks have come: see called. In a tally B is roundOfTally, Z tells whether anybody has sent anything, and the payload is
	// counts.
	kindRound
	// kindCounts is counts of a tally that belong to the kindRound which follows.
	kindCounts
	// kindArrive: the sender has come to number X of meeting Service; A is its
	// call, Y its history, Z the sum of its histories so far.
	kindArrive
	// kindRelease: all have come to number X of meeting Service; Y is by which calls, if these differ.
	kindRelease
	// kindAbsent: rank Y has left the job, because of which the sender comes to the end of nothing of meeting Service
	// after number X. Where there are rounds it is one that tells of round A, of a tally if B is roundOfTally.
	kindAbsent
	// kindFailed: rank X has failed; the payload says why.
	kindFailed
	// kindRecord asks for the record of call X, kindName for the name of the
	// element layout X.
	kindRecord
	kindName
	// The messages of Shrink: kindPropose has the contact of the sender for the new
	// World, kindInquire asks for the outcome, which is a kindSurvivor for each rank
	// X, with its contact, and at the end kindSurvivors with their number X.
	kindPropose
	kindInquire
	kindSurvivor
	kindSurvivors
	// kindRing offers a ring of the sender's, which looks there.
	kindRing
	// kindMail is a letter of a collective, kindMailTaken tells that X bytes of them were taken.
	kindMail
	kindMailTaken
	// kindReady: the sender waits for a message of a collective in X, Y and Z, the address, length and key of
	// its memory. kindFilled tells that X bytes of it have been written there, the first time with its header,
	// kindLanded that X of them were taken.
	kindReady
	kindFilled
	kindLanded
	// kindCall asks which call of the program the rank sleeps in.
	kindCall
	// FirstKind is the first of those that Services have for themselves. From
	// FirstOvertaking on they are served before messages that are put off, unless they
	// are questions: their Service neither answers them nor puts them off.
	FirstKind       uint8 = 32
	FirstOvertaking uint8 = 128
)

// A Service serves messages of other ranks, in the order in which each has sent
// them. Serve runs in progress, one at a time on a rank: it must not block (see
// Link.Later), and payload is valid only until it returns. An error refuses a question, and else is told
// to the sender by its next Flush; one that wraps ErrMessage ends the link.
type Service interface {
	Serve(from *Link, m *Message, payload []byte) error
}

// Serve has messages to the service of a number, from 1, served from now on, until
// stop is called. See World.KeepProgress.
func (w *World) Serve(number uint32, s Service) (stop func()) {
	w.engine.Lock()
	defer w.engine.Unlock()
	w.services[number] = s
	return func() {
		w.engine.Lock()
		defer w.engine.Unlock()
		delete(w.services, number)
	}
}

// completed files a completion of a link's queue pair. It is called with the mutex
// of progress.
func (l *Link) completed(c *verbs.Completion) {
	if c.Status != verbs.StatusSuccess {
		l.ends(brokenBy(c, l.pair))
		return
	}
	if c.ID&receiveID == 0 {
		l.bring(c.ID)
		l.done.Store(max(l.done.Load(), c.ID))
		if l.stuck.Load() {
			l.Post()
		}
		return
	}
	if poll := l.world.engine.Polls(); l.heardIn != poll {
		l.heardIn, l.letters = poll, 0
	}
	if l.letters++; l.letters == linkReceives/2 {
		// The rank may wait for room.
		l.Urgent()
	}
	slot := int(c.ID &^ receiveID)
	l.takeLetter(slot, l.slotMemory(slot)[:min(int(c.Bytes), l.world.linkLetter)])
}

// brokenBy is why a queue pair is no good any more, of which c is a completion: in one
// line, as it goes into messages and to other ranks.
func brokenBy(c *verbs.Completion, pair verbs.QueuePair) error {
	switch err := pair.Err(); {
	case err == nil:
		return c.Status
	case c.Status == verbs.StatusFlushed:
		// It says no more than that the pair has an error.
		return err
	default:
		return fmt.Errorf("%w: %w", err, c.Status)
	}
}

// Urgent tells that somebody waits for what a message has this rank do, though it is no question. It is for a
// Service, of the message that it serves.
func (l *Link) Urgent() { l.world.engine.Urgent() }

// serve does what a message asks.
func (l *Link) serve(m *Message, payload []byte) error {
	w := l.world
	if m.question {
		l.Urgent()
	}
	switch {
	case m.Kind >= FirstKind && w.Failure(l.rank) != nil:
		// What it held others may have by now. Of meetings what it has said counts.
	case m.Kind >= FirstKind:
		return l.serveService(m, payload)
	case m.Kind == kindAnswer || m.Kind == kindRefusal:
		return l.answer(m, payload)
	case m.Kind == kindComplaint:
		l.mu.Lock()
		l.refused(m, payload)
		l.mu.Unlock()
	case m.Kind == kindFlush:
		l.answerFlush()
	case m.Kind == kindRecord:
		w.answerRecord(l, uint32(m.X))
	case m.Kind == kindName:
		w.answerKindName(l, m.X)
	case m.Kind == kindCall:
		w.answerCall(l)
	case m.Kind >= kindPropose && m.Kind <= kindSurvivors:
		return w.serveShrink(l, m, payload)
	case m.Kind == kindNothing:
		// Who sends it waits for its completion.
		w.engine.Completing()
	case m.Kind == kindRing:
		return l.lendRing(payload)
	case m.Kind == kindMail:
		return w.post.mailed(l, payload)
	case m.Kind == kindMailTaken:
		return w.post.mailTaken(l, m.X)
	case m.Kind == kindReady:
		return w.post.ready(l, m)
	case m.Kind == kindFilled:
		return w.post.filled(l, m, payload)
	case m.Kind == kindLanded:
		return w.post.landed(l, m.X)
	case m.Kind == kindLeft:
		w.leftAfter(l.rank, payload)
		w.part(l.rank)
	case m.Kind == kindFailed:
		if m.X >= uint64(w.size) || int(m.X) == w.rank {
			return fmt.Errorf("%w: the failure of rank %d", ErrMessage, m.X)
		}
		if w.roster.failed[l.rank].Load() != nil {
			// A rank that was stopped finds that others have ended their connections to it, and takes them for failed.
			// This rank may know of its failure from another rank before it ends its own connection.
			return nil
		}
		w.roster.fail(int(m.X), &toldError{int(m.X), l.rank, cleanReason(string(payload))})
	case m.Kind == kindVerdict:
		v := verdict{uint32(m.X), int(m.Y) - 1, m.A == 1, verdictText(string(payload))}
		if m.Y > uint64(w.size) || m.X > 1<<32-1 || m.A > 1 || !v.valid(w) {
			return fmt.Errorf("%w: verdict %d on rank %d from collective %d on, with the text %q", ErrMessage, m.A, int(m.Y)-1, m.X, v.text)
		}
		w.ledger.judge(v)
	default:
		meeting := w.meetings[m.Service]
		if meeting == nil {
			return nil
		}
		return meeting.serve(l, m, payload)
	}
	return nil
}

// serveService has a Service serve a message. What it has refused is told by the next
// flush, which the message itself may be.
func (l *Link) serveService(m *Message, payload []byte) error {
	err := l.world.askService(l, m, payload)
	if err == nil && l.unserved.try != nil {
		return nil
	}
	l.unserved.try = nil
	return l.served(err)
}

// askService has a Service serve a message.
func (w *World) askService(l *Link, m *Message, payload []byte) error {
	if s := w.services[m.Service]; s != nil {
		return s.Serve(l, m, payload)
	}
	return fmt.Errorf("rank %d has no service %d, or none any more", w.rank, m.Service)
}

// served files what a Service says of the message that it has served.
func (l *Link) served(err error) error {
	if errors.Is(err, ErrMessage) {
		return err
	}
	switch {
	case err == nil && l.message.question:
		l.answerFlush()
	case err != nil && l.message.question:
		l.tellComplaints()
		l.Refuse(err)
	case err != nil:
		l.complaints.note(l.message.Service, 0, err)
	}
	return nil
}

// answerFlush answers a question that asks no more than to know when all before it, and
// itself, has been served.
func (l *Link) answerFlush() {
	l.tellComplaints()
	l.Answer(nil)
}

// tellComplaints tells what was refused of the messages before an answer, ahead of that.
func (l *Link) tellComplaints() {
	for _, c := range l.complaints {
		l.Complain(c.service, c.err)
	}
	clear(l.complaints)
	l.complaints = l.complaints[:0]
}

// refused keeps what the rank tells that it has refused. It is called with the mutex.
func (l *Link) refused(m *Message, text []byte) {
	l.refusals.note(m.Service, l.answered.Load()+1, &RejectionError{Rank: l.rank, Text: string(text)})
}

// answer puts an answer where the oldest question wants it.
func (l *Link) answer(m *Message, payload []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.answered.Load()
	if n == l.asked {
		return fmt.Errorf("%w: an answer to no question", ErrMessage)
	}
	e := &l.expected[n%mostAsked]
	into, receiver := e.into, e.receiver
	e.into, e.receiver = nil, nil
	switch {
	case m.Kind == kindRefusal:
		l.refused(m, payload)
		if receiver != nil {
			receiver.Refused()
		}
	case receiver != nil:
		if !receiver.Answered(payload) {
			return fmt.Errorf("%w: an answer of %s to a question for another length", ErrMessage, errtext.Count(len(payload), "byte"))
		}
	case len(payload) != len(into):
		return fmt.Errorf("%w: an answer of %s to a question for %d", ErrMessage, errtext.Count(len(payload), "byte"), len(into))
	default:
		l.world.Copied(copy(into, payload))
	}
	if done := l.done.Load(); e.lastRead <= done && !l.card.attributes.Resends {
		l.bringHere(e.sequence)
		l.done.Store(max(done, e.sequence))
	}
	l.answered.Store(n + 1)
	return nil
}

// NewNumber is a number for a Service and a Meeting, the same on every rank: ranks
// call it in the same order.
func (w *World) NewNumber() uint32 { return FirstMeeting - 1 + w.numbers.Add(1) }
