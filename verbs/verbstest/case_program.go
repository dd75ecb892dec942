package verbstest

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/verbs"
)

// plainPrograms is the number of random programs in a run of plain size.
const plainPrograms = 16

// programs returns cases of random programs. Such a program runs on the device and on a model that is only the
// contract: four byte slices and two lists of completions per stream. The device must hold and report what the model
// does.
func programs(first uint64, n int) []testCase {
	cases := make([]testCase, n)
	for i := range cases {
		seed := first + uint64(i)
		cases[i] = testCase{fmt.Sprintf("seed %d", seed), func(b *bench) { runProgram(b, seed) }}
	}
	return cases
}

func runProgram(b *bench, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))
	near, far := b.two()
	z := sizes{MaxSends: 8 + random.IntN(60)}
	p, pf := connected(near, far, z)
	qf, q := connected(far, near, z)
	attributes := near.device.Attributes()
	var streams []*stream
	for _, ends := range [][2]*pair{{p, pf}, {pf, p}, {q, qf}, {qf, q}} {
		streams = append(streams, newStream(random, attributes, ends[0], ends[1], z))
	}
	b.Cleanup(func() {
		if b.Failed() {
			// At this size a variant has all cases.
			b.Logf("to repeat: %s", testsize.Replay(b.Name(), seed, variantShare))
			for i, s := range streams {
				b.Logf("seed %d, stream %d:\n%s", seed, i, strings.Join(s.log[max(0, len(s.log)-40):], "\n"))
			}
		}
	})
	for range 250 {
		streams[random.IntN(len(streams))].step()
	}
	for _, s := range streams {
		s.settle()
	}
	if random.IntN(3) == 0 {
		return
	}
	// One connection fails. Both of its streams end there, the others continue.
	streams[0].fail()
	for range 20 {
		streams[2+random.IntN(2)].step()
	}
	streams[2].settle()
	streams[3].settle()
}

const (
	sourceSize = 32 << 10 // the part of a stream's own memory that requests read from
	mineSize   = 2 * sourceSize
	targetSize = 32 << 10
	inboxSize  = 128 << 10
)

// A stream is the requests of one end of a connection. It has its own memory on both sides, so that streams do not
// depend on each other's progress.
type stream struct {
	*rand.Rand
	verbs.Attributes
	from, to            *pair
	mine, target, inbox *area
	maxSends            int

	// The model.
	mineHolds, targetHolds, inboxHolds []byte
	wantSent, wantReceived             []verbs.Completion
	messages                           []message // that have no receive yet
	receives                           []slot    // that have no message yet

	batch       []work
	outstanding int
	busy        []span // target memory that reads and atomics may still access
	results     int    // where in mine the next read goes
	inboxed     int    // where in inbox the next receive goes
	waiting     int    // bytes of messages
	posted      int    // receives since the stream settled
	id          uint64
	log         []string
}

type span struct{ from, to int }

type message struct {
	data      []byte
	length    int
	immediate uint32
	has       bool // immediate
}

func newStream(random *rand.Rand, attributes verbs.Attributes, from, to *pair, z sizes) *stream {
	from.Helper()
	s := &stream{
		Rand: random, Attributes: attributes, from: from, to: to, maxSends: z.MaxSends,
		mine: from.allocate(mineSize, all), target: to.allocate(targetSize, all), inbox: to.allocate(inboxSize, all),
		results: sourceSize,
	}
	s.mineHolds, s.targetHolds, s.inboxHolds = s.mine.fill(random.Uint64()), s.target.fill(random.Uint64()), s.inbox.fill(random.Uint64())
	return s
}

func (s *stream) say(format string, arguments ...any) {
	s.log = append(s.log, fmt.Sprintf(format, arguments...))
}

// step makes one request or receive, or waits for all.
func (s *stream) step() {
	switch k := s.IntN(20); {
	case k == 0:
		s.settle()
	case k < 4:
		s.receive()
	case k < 6:
		s.flush()
	default:
		s.request()
	}
}

// length draws the length of a message.
func (s *stream) length() int {
	switch s.IntN(8) {
	case 0:
		return 0
	case 1:
		return s.IntN(min(20_000, s.MaxMessage))
	case 2:
		return s.IntN(2000)
	default:
		return s.IntN(100)
	}
}

// request makes one request and applies it to the model.
func (s *stream) request() {
	if s.outstanding >= s.maxSends-1 || s.results > mineSize-21_000 {
		s.settle()
	}
	n := s.length()
	if s.waiting+n > inboxSize/2-4096 {
		s.settle()
	}
	opcode := []verbs.Opcode{
		verbs.OpRDMAWrite, verbs.OpRDMAWrite, verbs.OpRDMAWriteImmediate, verbs.OpRDMARead, verbs.OpRDMARead,
		verbs.OpSend, verbs.OpSendImmediate, verbs.OpFetchAdd, verbs.OpCompareSwap,
	}[s.IntN(9)]
	if opcode >= verbs.OpFetchAdd {
		n = 8
	}
	offset := s.IntN(targetSize - n + 1)
	if opcode >= verbs.OpFetchAdd {
		offset &^= 7
	}
	w := s.target.work(s.id, opcode, offset)
	s.id++
	here := span{offset, offset + n}
	if s.IntN(6) == 0 || writes(opcode) && s.looksAt(here) {
		w = w.fenced()
		s.busy = nil
	}
	if s.IntN(3) > 0 {
		w = w.silent()
	}
	message := message{length: n, immediate: s.Uint32(), has: opcode != verbs.OpSend}
	w.Immediate = message.immediate
	switch opcode {
	case verbs.OpRDMAWrite, verbs.OpRDMAWriteImmediate, verbs.OpSend, verbs.OpSendImmediate:
		data := s.gather(&w, n)
		switch opcode {
		case verbs.OpRDMAWrite:
			copy(s.targetHolds[offset:], data)
		case verbs.OpRDMAWriteImmediate:
			copy(s.targetHolds[offset:], data)
			s.deliver(message)
		default:
			message.data = data
			s.deliver(message)
		}
	case verbs.OpRDMARead:
		s.scatter(&w, s.targetHolds[offset:offset+n])
		s.busy = append(s.busy, here)
	default:
		s.atomic(&w, s.targetHolds[offset:offset+8])
		s.busy = append(s.busy, here)
	}
	s.say("request %d: opcode %d, %d bytes at %d, flags %#x, %d segments", w.ID, opcode, n, offset, w.Flags, len(w.Named)+len(w.Pieces))
	s.add(w)
}

func (s *stream) add(w work) {
	s.batch = append(s.batch, w)
	s.outstanding++
	if w.Flags&verbs.Signalled != 0 {
		s.wantSent = append(s.wantSent, done(w))
	}
}

func writes(opcode verbs.Opcode) bool {
	return opcode == verbs.OpRDMAWrite || opcode == verbs.OpRDMAWriteImmediate
}

// looksAt reports whether an earlier read may still access bytes of here.
func (s *stream) looksAt(here span) bool {
	for _, b := range s.busy {
		if here.from < b.to && b.from < here.to {
			return true
		}
	}
	return false
}

func (s *stream) flush() {
	if len(s.batch) > 0 {
		s.say("post %d", len(s.batch))
		s.from.post(s.batch...)
		s.batch = nil
	}
}

// settle waits until everything has happened and compares everything.
func (s *stream) settle() {
	s.from.Helper()
	s.receiveAll()
	for len(s.receives) > 0 && s.outstanding < s.maxSends-1 {
		s.deliver(message{})
		w := send(s.id).silent()
		s.id++
		s.add(w)
	}
	w := s.target.write(s.id, 0)
	s.id++
	s.add(w)
	s.flush()
	s.say("settle: %d completions, %d received", len(s.wantSent), len(s.wantReceived))
	s.from.expectSent(s.wantSent...)
	s.to.expectReceived(s.wantReceived...)
	s.wantSent, s.wantReceived, s.outstanding, s.busy, s.results = nil, nil, 0, nil, sourceSize
	s.target.expect(s.targetHolds, "a program, at the target")
	s.mine.expect(s.mineHolds, "a program, at the requester")
	s.inbox.expect(s.inboxHolds, "a program, in the receives")
	copy(s.mineHolds, s.mine.fill(s.Uint64()))
	if len(s.receives) > 0 {
		s.settle()
		return
	}
	s.inboxed, s.posted = 0, 0
}

// fail ends the stream by a request that is not allowed, with some requests before and after it.
func (s *stream) fail() {
	s.settle()
	for range s.IntN(5) {
		s.request()
	}
	s.receiveAll()
	bad := s.target.write(s.id, targetSize-4, s.mine.at(0, 8))
	if s.IntN(2) == 0 {
		bad = bad.silent()
	}
	s.batch = append(s.batch, bad)
	want := append(s.wantSent, failed(bad.ID, verbs.StatusRemoteAccess))
	for range s.IntN(4) {
		s.id++
		s.batch = append(s.batch, s.target.write(s.id, 0, s.mine.at(0, 8)).silent())
		want = append(want, failed(s.id, verbs.StatusFlushed))
	}
	s.say("request %d: a write that is not allowed", bad.ID)
	s.flush()
	s.from.expectSent(want...)
	s.to.expectReceived(s.wantReceived...)
	s.target.expect(s.targetHolds, "a program that fails, at the target")
	s.mine.expect(s.mineHolds, "a program that fails, at the requester")
	s.inbox.expect(s.inboxHolds, "a program that fails, in the receives")
	s.from.expectError()
}
