package verbstest

import (
	"fmt"
	"math/rand/v2"

	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/verbs"
)

// Every opcode moves the requested bytes and no others.
var transferCases = []testCase{
	{"write", func(b *bench) {
		transferSizes(b, func(near, far *pair, from, to *area, size, offset int, want []byte) {
			w := to.write(uint64(size), offset, from.at(offset, offset+size))
			near.post(w)
			near.expectSent(done(w))
			copy(want[offset:], from.memory()[offset:offset+size])
		})
	}},
	{"write with immediate", func(b *bench) {
		transferSizes(b, func(near, far *pair, from, to *area, size, offset int, want []byte) {
			far.receive(7, to.at(0, 1))
			w := to.writeImmediate(uint64(size), offset, uint32(size)^0xa5000000, from.at(offset, offset+size))
			near.post(w)
			far.expectReceived(gotImmediate(7, size, uint32(size)^0xa5000000))
			near.expectSent(done(w))
			copy(want[offset:], from.memory()[offset:offset+size])
		})
	}},
	{"send", func(b *bench) {
		transferSizes(b, func(near, far *pair, from, to *area, size, offset int, want []byte) {
			far.receive(8, to.at(offset, offset+size))
			w := send(uint64(size), from.at(offset, offset+size))
			near.post(w)
			far.expectReceived(got(8, size))
			near.expectSent(done(w))
			copy(want[offset:], from.memory()[offset:offset+size])
		})
	}},
	{"send with immediate", func(b *bench) {
		transferSizes(b, func(near, far *pair, from, to *area, size, offset int, want []byte) {
			far.receive(9, to.at(offset, to.size))
			w := sendImmediate(uint64(size), ^uint32(size), from.at(offset, offset+size))
			near.post(w)
			far.expectReceived(gotImmediate(9, size, ^uint32(size)))
			near.expectSent(done(w))
			copy(want[offset:], from.memory()[offset:offset+size])
		})
	}},
	{"send before its receive", func(b *bench) {
		transferSizes(b, func(near, far *pair, from, to *area, size, offset int, want []byte) {
			w := send(uint64(size), from.at(offset, offset+size))
			near.post(w)
			far.receive(10, to.at(offset, offset+size))
			far.expectReceived(got(10, size))
			near.expectSent(done(w))
			copy(want[offset:], from.memory()[offset:offset+size])
		})
	}},
	{"read", func(b *bench) {
		near, far := b.pair(sizes{})
		for _, size := range messageSizes(near) {
			offset := size % 61
			from, into := far.allocate(size+128, all), near.allocate(size+128, all)
			source, want := from.fill(uint64(size)), into.fill(1)
			w := from.read(uint64(size), offset, into.at(offset, offset+size))
			near.post(w)
			near.expectSent(done(w))
			copy(want[offset:offset+size], source[offset:])
			into.expect(want, fmt.Sprintf("a read of %d bytes", size))
			from.expect(source, fmt.Sprintf("a read of %d bytes, at its source", size))
		}
		near.quiet()
	}},
	{"long writes and reads both ways at once", func(b *bench) {
		near, far := b.pair(sizes{})
		const turns = 2
		size := min(12<<20+17, near.device.Attributes().MaxMessage)
		sides := [...]*pair{near, far}
		var source, written, read [2]*area
		var texts, wantWritten, wantRead [2][]byte
		for i, side := range sides {
			source[i], written[i], read[i] = side.allocate(size, all), side.allocate(size+256, all), side.allocate(size+256, all)
			texts[i], wantWritten[i], wantRead[i] = source[i].fill(uint64(i+1)), written[i].fill(uint64(i+3)), read[i].fill(uint64(i+5))
		}
		var wants [2][]verbs.Completion
		for turn := range turns {
			for i, side := range sides {
				other := 1 - i
				w := written[other].write(uint64(2*turn), 128, source[i].at(0, size))
				r := source[other].read(uint64(2*turn+1), 0, read[i].at(128, 128+size))
				side.post(w, r)
				wants[i] = append(wants[i], done(w), done(r))
			}
		}
		for i, side := range sides {
			side.expectSent(wants[i]...)
		}
		for i := range sides {
			copy(wantWritten[i][128:], texts[1-i])
			copy(wantRead[i][128:], texts[1-i])
			written[i].expect(wantWritten[i], "long writes while reads are answered")
			read[i].expect(wantRead[i], "long reads while writes are taken")
		}
		near.quiet()
	}},
	{"fetch and add", func(b *bench) {
		near, far := b.pair(sizes{})
		to, into := far.allocate(64, all), near.allocate(64, all)
		want, old := to.fill(1), into.fill(2)
		for i, delta := range []uint64{0, 1, 1 << 40, ^uint64(0), 0x8000000000000000, 12345} {
			w := to.fetchAdd(uint64(i), 24, delta, into.at(16, 24))
			near.post(w)
			near.expectSent(done(w))
			copy(old[16:24], want[24:32])
			put64(want[24:], get64(want[24:])+delta)
			to.expect(want, fmt.Sprintf("adding %#x", delta))
			into.expect(old, fmt.Sprintf("adding %#x, at the requester", delta))
		}
	}},
	{"compare and swap", func(b *bench) {
		near, far := b.pair(sizes{})
		to, into := far.allocate(64, all), near.allocate(64, all)
		want, old := to.fill(1), into.fill(2)
		for i := range uint64(6) {
			now := get64(want[40:])
			expected := now
			if i%2 == 1 {
				expected ^= 1 << (10 * i)
			}
			w := to.compareSwap(i, 40, expected, now+i, into.at(8, 16))
			near.post(w)
			near.expectSent(done(w))
			put64(old[8:], now)
			if expected == now {
				put64(want[40:], now+i)
			}
			to.expect(want, fmt.Sprintf("swapping for %#x where %#x was expected in place of %#x", now+i, expected, now))
			into.expect(old, "a swap, at the requester")
		}
	}},
	{"atomics in a region that begins between words", func(b *bench) {
		near, far := b.pair(sizes{})
		whole, into := far.allocate(64, all), near.allocate(8, all)
		want := whole.fill(3)
		to := whole.register(4, 60, all)
		w := to.fetchAdd(1, 4, 5, into.every())
		near.post(w)
		near.expectSent(done(w))
		put64(want[8:], get64(want[8:])+5)
		whole.expect(want, "an add to the word 4 bytes into a region that begins 4 bytes into a word")
	}},
	{"empty messages", func(b *bench) {
		near, far := b.pair(sizes{})
		to, from := far.allocate(64, all), near.allocate(64, all)
		want, source := to.fill(1), from.fill(2)
		empty := from.at(8, 8)
		works := []work{
			to.write(1, 0), to.write(2, 64), to.write(3, 32, empty, empty),
			to.read(4, 0), to.read(5, 64), to.read(6, 8, empty),
			send(7), sendImmediate(8, 80, empty), to.writeImmediate(9, 0, 90), to.writeImmediate(10, 64, 100, empty),
			send(11, empty),
		}
		for id := uint64(1); id <= 5; id++ {
			far.receive(id, to.at(0, 8))
		}
		near.post(works...)
		for _, w := range works {
			near.expectSent(done(w))
		}
		far.expectReceived(got(1, 0), gotImmediate(2, 0, 80), gotImmediate(3, 0, 90), gotImmediate(4, 0, 100), got(5, 0))
		to.expect(want, "empty messages")
		from.expect(source, "empty messages, at the requester")
		near.quiet()
		far.quiet()
	}},
	{"an empty receive takes an empty message", func(b *bench) {
		near, far := b.pair(sizes{})
		far.receive(1)
		w := sendImmediate(2, 3)
		near.post(w)
		far.expectReceived(gotImmediate(1, 0, 3))
		near.expectSent(done(w))
	}},
	{"gather", func(b *bench) {
		near, far := b.pair(sizes{})
		from, to := near.allocate(9000, all), far.allocate(9000, all)
		source, want := from.fill(1), to.fill(2)
		random := rand.New(rand.NewPCG(1, 2))
		for id := uint64(1); id <= 40; id++ {
			segments, bytes := shape(random, near, from, source)
			offset := random.IntN(to.size - len(bytes) + 1)
			var w work
			switch id % 3 {
			case 0:
				w = to.write(id, offset, segments...)
			case 1:
				w = to.writeImmediate(id, offset, 5, segments...)
				far.receive(id)
			default:
				w = send(id, segments...)
				far.receive(id, to.at(offset, offset+len(bytes)))
			}
			near.post(w)
			near.expectSent(done(w))
			copy(want[offset:], bytes)
			if id%3 != 0 {
				far.received(1)
			}
			to.expect(want, fmt.Sprintf("gathering %v", segments))
		}
	}},
	{"scatter", func(b *bench) {
		near, far := b.pair(sizes{})
		from, to := far.allocate(9000, all), near.allocate(9000, all)
		source, want := from.fill(1), to.fill(2)
		random := rand.New(rand.NewPCG(3, 4))
		for id := uint64(1); id <= 40; id++ {
			segments, replaced := shape(random, near, to, want)
			offset := random.IntN(from.size - len(replaced) + 1)
			bytes := source[offset : offset+len(replaced)]
			if id%2 == 0 {
				w := from.read(id, offset, segments...)
				near.post(w)
				near.expectSent(done(w))
			} else {
				// A message may fill only some of the segments, and part of one.
				bytes = bytes[:random.IntN(len(bytes)+1)]
				near.receive(id, segments...)
				w := send(id, from.at(offset, offset+len(bytes)))
				far.post(w)
				near.expectReceived(got(id, len(bytes)))
				far.expectSent(done(w))
			}
			for _, segment := range segments {
				bytes = bytes[copy(want[segment.From:segment.To], bytes):]
			}
			to.expect(want, fmt.Sprintf("scattering into %v", segments))
		}
	}},
	{"a segment list as long as allowed and one longer", func(b *bench) {
		near, far := b.pair(sizes{})
		longest := near.device.Attributes().MaxSegments
		b.skipUnless(longest <= 1<<16, "the segment list has no limit that can be reached")
		from, to := near.allocate(2*longest+2, all), far.allocate(2*longest+2, all)
		source, want := from.fill(1), to.fill(2)
		var segments []segment
		for i := range longest + 1 {
			segments = append(segments, from.at(2*i, 2*i+1))
		}
		w := to.write(1, 0, segments[:longest]...)
		near.post(w)
		near.expectSent(done(w))
		for i := range longest {
			want[i] = source[2*i]
		}
		to.expect(want, "a write of the longest list")
		near.expectReceiveRefusal(slot{2, segments})
		near.expectRefusal(to.write(3, longest+1, segments...))
		to.expect(want, "a write of a list that is too long")
	}},
	{"both ends request at once", func(b *bench) {
		near, far := b.pair(sizes{})
		ends := []*pair{near, far}
		areas := []*area{near.allocate(4096, all), far.allocate(4096, all)}
		data := [][]byte{areas[0].fill(1), areas[1].fill(2)}
		for id := uint64(1); id <= 20; id++ {
			for i, p := range ends {
				p.receive(100+id, areas[i].at(3000, 3100))
			}
			for i, p := range ends {
				mine, theirs := areas[i], areas[1-i]
				p.post(
					theirs.write(id, 1000, mine.at(0, 500)),
					theirs.read(id+50, 500, mine.at(2000, 2500)),
					send(id+70, mine.at(0, 100)),
				)
			}
			for _, p := range ends {
				p.expectSent(
					verbs.Completion{ID: id, Opcode: verbs.OpRDMAWrite},
					verbs.Completion{ID: id + 50, Opcode: verbs.OpRDMARead},
					verbs.Completion{ID: id + 70, Opcode: verbs.OpSend},
				)
				p.expectReceived(got(100+id, 100))
			}
		}
		for i := range areas {
			copy(data[i][1000:1500], data[1-i][:500])
			copy(data[i][3000:3100], data[1-i][:100])
		}
		for i := range areas {
			copy(data[i][2000:2500], data[1-i][500:1000])
			areas[i].expect(data[i], fmt.Sprintf("traffic both ways, on side %d", i))
		}
	}},
	{"a device connected to itself", func(b *bench) {
		near := b.near()
		p, q := connected(near, near, sizes{})
		if p.number == q.number {
			b.Fatalf("both ends have the number %d", p.number)
		}
		from, to := near.allocate(100, all), near.allocate(100, all)
		data := from.fill(1)
		q.receive(1, to.at(50, 100))
		w, s := to.write(2, 0, from.at(0, 50)), send(3, from.at(50, 100))
		p.post(w, s)
		p.expectSent(done(w), done(s))
		q.expectReceived(got(1, 50))
		to.expect(data, "a write and a send to the device itself")
	}},
	{"memory of the program's own as source and destination", func(b *bench) {
		near, far := b.pair(sizes{})
		from, into := near.heap(5000, 0), near.heap(5000, verbs.LocalWrite)
		to := far.allocate(5000, all)
		data := from.fill(1)
		w, r := to.write(1, 0, from.every()), to.read(2, 0, into.every()).fenced()
		near.post(w, r)
		near.expectSent(done(w), done(r))
		into.expect(data, "a write from and a read into the Go heap")
		near.receive(3, into.at(0, 100))
		s := send(4, to.at(4000, 4100))
		far.post(s)
		near.expectReceived(got(3, 100))
		far.expectSent(done(s))
		copy(data[:100], data[4000:4100])
		into.expect(data, "a receive into the Go heap")
	}},
}

// messageSizes returns lengths around the sizes at which devices change their protocol. A plain run has several MiB
// only in the case of long writes and reads.
func messageSizes(p *pair) []int {
	most := p.device.Attributes().MaxMessage
	if testsize.N(1) == 1 {
		most = min(most, 1<<20+1)
	}
	var out []int
	for _, n := range []int{
		0, 1, 3, 7, 8, 9, 31, 32, 33, 63, 64, 65, 255, 256, 257, 1000, 4095, 4096, 4097,
		16 << 10, 64<<10 - 1, 64<<10 + 1, 256<<10 + 8, 1<<20 - 1, 1<<20 + 1, 5<<20 + 13,
	} {
		if n <= most {
			out = append(out, n)
		}
	}
	return out
}

// transferSizes runs body for messages of many sizes, and compares the target with the contents that body returns.
func transferSizes(b *bench, body func(near, far *pair, from, to *area, size, offset int, want []byte)) {
	b.Helper()
	near, far := b.pair(sizes{})
	lengths := messageSizes(near)
	room := lengths[len(lengths)-1] + 128
	source, target := near.allocate(room, all), far.allocate(room, all)
	for _, size := range lengths {
		offset := size % 61
		from, to := source.register(0, size+128, all), target.register(0, size+128, all)
		from.fill(uint64(size))
		want := to.fill(uint64(size) + 1)
		body(near, far, from, to, size, offset, want)
		to.expect(want, fmt.Sprintf("a message of %d bytes", size))
		near.quiet()
		far.quiet()
	}
}

// shape draws a list of segments of an area that do not overlap, and returns it with the bytes of contents that they
// cover.
func shape(random *rand.Rand, p *pair, a *area, contents []byte) ([]segment, []byte) {
	n := 1 + random.IntN(min(p.device.Attributes().MaxSegments, 12))
	order := random.Perm(n)
	room := a.size / n
	segments, bytes := make([]segment, n), []byte(nil)
	for i, place := range order {
		length := []int{0, 1, 8, 64, room}[random.IntN(5)]
		if random.IntN(2) == 0 {
			length = random.IntN(room + 1)
		}
		from := place*room + random.IntN(room-min(length, room)+1)
		segments[i] = a.at(from, from+min(length, room))
		bytes = append(bytes, contents[segments[i].From:segments[i].To]...)
	}
	return segments, bytes
}
