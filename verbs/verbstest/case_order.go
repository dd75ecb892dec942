package verbstest

import (
	"encoding/gob"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/onesided/rma/internal/raceorder"
	"github.com/onesided/rma/verbs"
)

// Requests of one queue pair take effect in the order in which they were posted, and completions are correct and
// timely.
var orderCases = []testCase{
	{"bytes of a write are there when a later send is received", func(b *bench) {
		witness(b, func(to *area, round int, from segment) []work {
			return []work{
				to.write(0, witnessOffset(round), from).silent(),
				sendImmediate(uint64(round), uint32(round)),
			}
		})
	}},
	{"bytes of a write with immediate are there when it is received", func(b *bench) {
		witness(b, func(to *area, round int, from segment) []work {
			return []work{to.writeImmediate(uint64(round), witnessOffset(round), uint32(round), from)}
		})
	}},
	{"bytes of many writes are there when a later send is received", func(b *bench) {
		witness(b, func(to *area, round int, from segment) []work {
			var works []work
			middle := (from.From + from.To) / 2
			// Places of later rounds are written as well, and again in their own rounds.
			for later := round + 1; later < min(round+5, witnessRounds); later++ {
				works = append(works, to.write(0, witnessOffset(later), from).silent())
			}
			return append(works,
				to.write(0, witnessOffset(round)+middle-from.From, segment{from.Area, middle, from.To}).silent(),
				to.write(0, witnessOffset(round), segment{from.Area, from.From, middle}).silent(),
				sendImmediate(uint64(round), uint32(round)),
			)
		})
	}},
	{"words that are looked at show what was written before", func(b *bench) {
		near, far := b.pair(sizes{MaxSends: 2 * witnessRounds})
		from, to := near.allocate(witnessStride*witnessRounds, all), far.allocate(witnessStride*witnessRounds, all)
		for i := range witnessRounds {
			from.store(witnessOffset(i), noise(uint64(i), witnessStride))
		}
		wait := far.begin(lookStep{Pair: far.handle, Area: to.handle, From: 0, Until: witnessRounds, Bytes: 256})
		for i := range witnessRounds {
			at := witnessOffset(i)
			near.post(to.write(0, at, from.at(at, at+256)).silent(), to.write(1, at+256, from.at(at+256, at+264)))
			near.expectSent(verbs.Completion{ID: 1, Opcode: verbs.OpRDMAWrite})
		}
		wait()
	}},
	{"bytes of a write are placed in order where that is said", func(b *bench) {
		near, far := b.pair(sizes{})
		b.skipUnless(near.device.Attributes().OrderedWrites, "the device places the bytes of a write in any order")
		from, to := near.allocate(witnessStride*witnessRounds, all), far.allocate(witnessStride*witnessRounds, all)
		for i := range witnessRounds {
			at, n := witnessOffset(i), 8*(i%64)
			from.store(at, noise(uint64(i), witnessStride))
			near.post(to.write(1, at, from.at(at, at+n), from.at(at+n, at+n+8)))
			far.must(lookStep{Pair: far.handle, Area: to.handle, From: i, Until: i + 1, Bytes: n})
			near.expectSent(verbs.Completion{ID: 1, Opcode: verbs.OpRDMAWrite})
		}
	}},
	{"messages arrive in the order in which they were sent", func(b *bench) {
		sendStream(b, 1000, 2000, sizes{})
	}},
	{"messages of up to 300 kB arrive in order", func(b *bench) {
		sendStream(b, 40, 300_000, sizes{})
	}},
	{"messages arrive in order through short queues", func(b *bench) {
		sendStream(b, 200, 500, sizes{MaxSends: 2, MaxReceives: 4})
	}},
	{"many messages wait in order for their receives", func(b *bench) {
		near, far := b.pair(sizes{})
		const most = 9000
		from, to := near.allocate(100*most, all), far.allocate(100*most, all)
		source, want := from.fill(1), to.fill(2)
		var slots []slot
		for i := range 100 {
			size := messageSize(i, most)
			copy(want[i*most:], source[i*most:i*most+size])
			near.post(send(uint64(i), from.at(i*most, i*most+size)))
			slots = append(slots, slot{uint64(i), []segment{to.at(i*most, (i+1)*most)}})
		}
		far.receiveAll(slots...)
		for i := range 100 {
			far.expectReceived(got(uint64(i), messageSize(i, most)))
			near.expectSent(verbs.Completion{ID: uint64(i), Opcode: verbs.OpSend})
		}
		to.expect(want, "messages that waited for receives")
	}},
	{"a write with immediate waits in order for its receive", func(b *bench) {
		near, far := b.pair(sizes{})
		from, to := near.allocate(8, all), far.allocate(24, all)
		want, source := to.fill(1), from.fill(2)
		works := []work{send(1, from.every()), to.writeImmediate(2, 8, 22, from.every()), send(3, from.at(0, 4)), to.write(4, 16, from.every())}
		near.post(works...)
		for id := uint64(10); id < 13; id++ {
			far.receive(id, to.at(0, 8))
		}
		far.expectReceived(got(10, 8), gotImmediate(11, 8, 22), got(12, 4))
		for _, w := range works {
			near.expectSent(done(w))
		}
		copy(want, source)
		copy(want[8:], source)
		copy(want[16:], source)
		to.expect(want, "a send, a write with immediate, a send and a write")
	}},
	{"the last of many writes to a place stays", func(b *bench) {
		near, far := b.pair(sizes{})
		from, to := near.allocate(100*64, all), far.allocate(64, all)
		source := from.fill(1)
		for range 10 {
			var works []work
			for i := range 100 {
				works = append(works, to.write(uint64(i), 0, from.at(i*64, i*64+64)).silent())
			}
			works[99] = to.write(99, 0, from.at(99*64, 100*64))
			near.post(works...)
			near.expectSent(done(works[99]))
			to.expect(source[99*64:], "the last of 100 writes")
			near.quiet()
		}
	}},
	{"reads and atomics see earlier writes and atomics", func(b *bench) {
		near, far := b.pair(sizes{})
		to, mine := far.allocate(64, all), near.allocate(256, all)
		to.fill(1)
		mine.store(0, make([]byte, 256))
		mine.store(0, []byte{7, 0, 0, 0, 0, 0, 0, 0})
		seven := get64([]byte{7, 0, 0, 0, 0, 0, 0, 0})
		works := []work{
			to.write(1, 8, mine.at(0, 8)).silent(),
			to.fetchAdd(2, 8, 5, mine.at(8, 16)).silent(),
			to.read(3, 8, mine.at(16, 24)).silent(),
			to.compareSwap(4, 8, seven+5, 99, mine.at(24, 32)).silent(),
			to.compareSwap(5, 8, seven+5, 98, mine.at(32, 40)).silent(),
			to.fetchAdd(6, 8, 1, mine.at(40, 48)).silent(),
			to.read(7, 8, mine.at(48, 56)),
		}
		near.post(works...)
		near.expectSent(done(works[6]))
		data := mine.load()
		for i, want := range []uint64{seven, seven, seven + 5, seven + 5, 99, 99, 100} {
			if v := get64(data[8*i:]); v != want {
				b.Errorf("request %d returned %d, want %d", i, v, want)
			}
		}
		near.quiet()
	}},
	{"a fenced request waits for earlier reads and atomics", func(b *bench) {
		near, far := b.pair(sizes{})
		const size = 1 << 16
		to, mine := far.allocate(size, all), near.allocate(3*size, all)
		for round := range uint64(10) {
			old := to.fill(2 * round)
			source := mine.fill(2*round + 1)
			near.receive(round, mine.at(2*size, 2*size+8))
			works := []work{
				to.read(1, 0, mine.at(size, 2*size)).silent(),
				to.write(2, 0, mine.at(0, size)).fenced(),
				// The fenced send carries what the read brings.
				to.read(3, 8, mine.at(0, 8)).silent(),
				send(4, mine.at(0, 8)).fenced(),
			}
			far.receive(4, to.at(0, 8))
			near.post(works...)
			near.expectSent(done(works[1]), done(works[3]))
			far.expectReceived(got(4, 8))
			if difference := differ(mine.load()[size:2*size], old); difference != "" {
				b.Fatalf("a read before a fenced write: %s", difference)
			}
			copy(source, source[8:16])
			to.expect(source[:size], "a write, a read and a fenced send")
		}
	}},
	{"one completion answers for all earlier unsignalled requests", func(b *bench) {
		near, far := b.pair(sizes{MaxSends: 16})
		from, to := near.allocate(1600, all), far.allocate(1600, all)
		for round := range uint64(20) {
			want := from.fill(round)
			far.receive(round)
			var works []work
			for i := range 15 {
				works = append(works, to.write(uint64(i), 100*i, from.at(100*i, 100*i+100)).silent())
			}
			works[7].Opcode, works[7].Immediate = verbs.OpRDMAWriteImmediate, 70
			last := to.write(15, 1500, from.at(1500, 1600))
			near.post(append(works, last)...)
			near.expectSent(done(last))
			to.expect(want, "fifteen unsignalled writes and one signalled")
			far.expectReceived(gotImmediate(round, 100, 70))
			near.quiet()
		}
	}},
	{"completions come in the order of requests", func(b *bench) {
		near, far := b.pair(sizes{OneQueue: true})
		from, to := near.allocate(1<<16, all), far.allocate(1<<16, all)
		var want []verbs.Completion
		var works []work
		for i := range uint64(60) {
			var w work
			switch i % 5 {
			case 0:
				w = to.write(i, 0, from.every())
			case 1:
				w = to.read(i, 8, from.at(0, 8))
			case 2:
				w = to.fetchAdd(i, 16, 1, from.at(0, 8))
			case 3:
				w = send(i, from.at(0, 100))
				far.receive(i, to.at(0, 100))
			default:
				w = to.write(i, 0, from.at(0, 1))
			}
			works, want = append(works, w), append(want, done(w))
		}
		near.post(works...)
		near.expectSent(want...)
	}},
	{"completions name their queue pair in a queue of several", func(b *bench) {
		near, far := b.two()
		p, pf := connected(near, far, sizes{OneQueue: true})
		q, qf := connected(near, far, sizes{Beside: p.handle + 1})
		if p.number == q.number || pf.number == qf.number {
			b.Fatalf("live queue pairs share a number: %#x and %#x here, %#x and %#x there", p.number, q.number, pf.number, qf.number)
		}
		from, to := near.allocate(64, all), far.allocate(64, all)
		p.post(to.write(1, 0, from.every()))
		p.expectSent(verbs.Completion{ID: 1, Opcode: verbs.OpRDMAWrite})
		q.post(to.write(1, 0, from.every()))
		q.expectSent(verbs.Completion{ID: 1, Opcode: verbs.OpRDMAWrite})
		p.receive(2, from.every())
		q.receive(3, from.every())
		qf.post(send(4, to.every()))
		q.expectReceived(got(3, 64))
		pf.post(send(5, to.every()))
		p.expectReceived(got(2, 64))
	}},
}

const (
	witnessRounds = 150
	witnessStride = 520
)

func witnessOffset(round int) int { return round * witnessStride }

// witness makes the near side fill one place per round. The far side checks that place as soon as it has received the
// round's number.
func witness(b *bench, round func(to *area, round int, from segment) []work) {
	b.Helper()
	near, far := b.pair(sizes{MaxReceives: witnessRounds})
	from, to := near.allocate(witnessStride*witnessRounds, all), far.allocate(witnessStride*witnessRounds, all)
	for i := range witnessRounds {
		from.store(witnessOffset(i), noise(uint64(i), witnessStride))
		far.receive(uint64(i))
	}
	wait := far.begin(witnessStep{far.handle, to.handle})
	for i := range witnessRounds {
		near.post(round(to, i, from.at(witnessOffset(i), witnessOffset(i)+1+i*3))...)
		near.expectSent(verbs.Completion{ID: uint64(i), Opcode: lastOpcode(round(to, i, segment{}))})
	}
	wait()
}

func lastOpcode(works []work) verbs.Opcode { return works[len(works)-1].Opcode }

// witnessStep is the far side of witness.
type witnessStep struct{ Pair, Area int }

func (p witnessStep) do(s *station) answer {
	held, memory := s.pair(p.Pair), s.area(p.Area).memory
	for i := range witnessRounds {
		completions, err := s.collect(held.receives, 1)
		if err != nil {
			return answer{Failure: failure(err)}
		}
		if c := completions[0]; c.Status != verbs.StatusSuccess || c.Immediate != uint32(i) {
			return answer{Failure: fmt.Sprintf("round %d: received %+v", i, c)}
		}
		want := noise(uint64(i), witnessStride)[:1+i*3]
		if difference := differ(memory[witnessOffset(i):][:len(want)], want); difference != "" {
			return answer{Failure: fmt.Sprintf("round %d: %s", i, difference)}
		}
	}
	return answer{}
}

// lookStep polls memory that the peer writes. In each round it waits for the word after Bytes bytes, and then checks
// the bytes.
type lookStep struct{ Pair, Area, From, Until, Bytes int }

func (p lookStep) do(s *station) answer {
	held, memory, channel := s.pair(p.Pair), s.area(p.Area).memory, s.device.Channel()
	for i := p.From; i < p.Until; i++ {
		want := noise(uint64(i), witnessStride)[:p.Bytes+8]
		last, end := word(memory, witnessOffset(i)+p.Bytes), s.clock()+s.config.Limit
		for looks := 1; atomic.LoadUint64(last) != get64(want[p.Bytes:]); looks++ {
			if looks%1000 != 0 {
				continue
			}
			// A write wakes no rank.
			ticket := channel.Prepare()
			held.receives.Poll(nil)
			s.config.sleep(s.device, ticket, time.Millisecond)
			channel.Finish()
			if s.clock() > end {
				return answer{Failure: fmt.Sprintf("round %d did not come", i)}
			}
		}
		raceorder.Acquire()
		if difference := differ(memory[witnessOffset(i):][:len(want)], want); difference != "" {
			return answer{Failure: fmt.Sprintf("round %d: %s", i, difference)}
		}
	}
	return answer{}
}

// messageSize returns the length of message i of a stream.
func messageSize(i, most int) int { return i * i * 7919 % (most + 1) }

// sendStream sends messages as fast as the queues allow to a far side that takes and checks them at the same time.
func sendStream(b *bench, count, most int, z sizes) {
	b.Helper()
	sendStreamBeside(b, count, most, z, func(*pair) func() { return func() {} })
}

// sendStreamBeside is sendStream while what begin has started runs.
func sendStreamBeside(b *bench, count, most int, z sizes, begin func(near *pair) (stop func())) {
	b.Helper()
	near, far := b.pair(z)
	defer begin(near)()
	const slots = 4
	to := far.allocate(slots*most, all)
	wait := far.begin(sinkStep{Pair: far.handle, Area: to.handle, Count: count, Most: most})
	sends := 16
	if z.MaxSends > 0 {
		sends = z.MaxSends
	}
	from := near.allocate(sends*most, all)
	for i := range count {
		if i >= sends {
			near.expectSent(verbs.Completion{ID: uint64(i - sends), Opcode: verbs.OpSend})
		}
		place, size := i%sends*most, messageSize(i, most)
		from.store(place, noise(uint64(i), size))
		near.post(send(uint64(i), from.at(place, place+size)))
	}
	near.sent(min(sends, count))
	wait()
	near.quiet()
}

// sinkStep receives the messages of sendStream and checks each.
type sinkStep struct{ Pair, Area, Count, Most int }

func (p sinkStep) do(s *station) answer {
	held, memory := s.pair(p.Pair), s.area(p.Area).memory
	slots := len(memory) / p.Most
	receive := func(i int) error {
		place := i % slots * p.Most
		_, err := s.postReceive(held, []slot{{uint64(i), []segment{{p.Area, place, place + p.Most}}}})
		return err
	}
	for i := range slots {
		if err := receive(i); err != nil {
			return answer{Failure: failure(err)}
		}
	}
	for i := range p.Count {
		completions, err := s.collect(held.receives, 1)
		if err != nil {
			return answer{Failure: failure(err)}
		}
		want := noise(uint64(i), messageSize(i, p.Most))
		c := completions[0]
		if c.Status != verbs.StatusSuccess || c.ID != uint64(i) || int(c.Bytes) != len(want) {
			return answer{Failure: fmt.Sprintf("message %d of %d bytes completed as %+v", i, len(want), c)}
		}
		if difference := differ(memory[i%slots*p.Most:][:len(want)], want); difference != "" {
			return answer{Failure: fmt.Sprintf("message %d: %s", i, difference)}
		}
		if i+slots < p.Count {
			if err := receive(i + slots); err != nil {
				return answer{Failure: failure(err)}
			}
		}
	}
	return answer{}
}

func init() {
	gob.Register(witnessStep{})
	gob.Register(lookStep{})
	gob.Register(sinkStep{})
}
