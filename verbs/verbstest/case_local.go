package verbstest

import (
	"slices"

	"github.com/onesided/rma/verbs"
)

// Segments must lie in the region of their key, with the right.
var localCases = []testCase{
	{"memory of another region", func(b *bench) {
		localViolation(b, verbs.OpRDMAWrite, func(mine, other *area) verbs.Segment {
			return verbs.Segment{Memory: other.memory()[:8], LKey: mine.lkey()}
		})
	}},
	{"memory of no region", func(b *bench) {
		localViolation(b, verbs.OpRDMAWrite, func(mine, _ *area) verbs.Segment {
			return verbs.Segment{Memory: make([]byte, 8), LKey: mine.lkey()}
		})
	}},
	{"memory that begins before the region", func(b *bench) {
		localViolation(b, verbs.OpSend, func(mine, _ *area) verbs.Segment {
			part := mine.register(32, 64, all)
			return verbs.Segment{Memory: mine.memory()[28:36], LKey: part.lkey()}
		})
	}},
	{"memory that ends behind the region", func(b *bench) {
		localViolation(b, verbs.OpRDMAWriteImmediate, func(mine, _ *area) verbs.Segment {
			part := mine.register(0, 32, all)
			return verbs.Segment{Memory: mine.memory()[25:33], LKey: part.lkey()}
		})
	}},
	{"an unknown key", func(b *bench) {
		localViolation(b, verbs.OpRDMARead, func(mine, _ *area) verbs.Segment {
			return verbs.Segment{Memory: mine.memory()[:8], LKey: mine.lkey() ^ 0x20000001}
		})
	}},
	{"no key", func(b *bench) {
		localViolation(b, verbs.OpRDMAWrite, func(mine, _ *area) verbs.Segment {
			return verbs.Segment{Memory: mine.memory()[:8]}
		})
	}},
	{"a deregistered region", func(b *bench) {
		localViolation(b, verbs.OpRDMAWrite, func(mine, _ *area) verbs.Segment {
			dead := mine.register(0, 32, all)
			key := dead.lkey()
			dead.deregister()
			return verbs.Segment{Memory: mine.memory()[:8], LKey: key}
		})
	}},
	{"the second of two segments", func(b *bench) {
		near, far := b.pair(sizes{})
		b.skipUnless(near.device.Attributes().MaxSegments >= 2, "the device takes no two segments")
		to, mine := far.allocate(64, all), near.allocate(64, all)
		want := to.fill(1)
		w := to.write(1, 0)
		w.Segments = []verbs.Segment{
			{Memory: mine.memory()[:8], LKey: mine.lkey()},
			{Memory: make([]byte, 8), LKey: mine.lkey()},
		}
		near.expectProtection(w)
		to.expect(want, "a write whose second segment is in no region")
	}},
	{"a read into a region without LocalWrite", func(b *bench) {
		localViolation(b, verbs.OpRDMARead, constant)
	}},
	{"a fetch and add into a region without LocalWrite", func(b *bench) {
		localViolation(b, verbs.OpFetchAdd, constant)
	}},
	{"a compare and swap into a region without LocalWrite", func(b *bench) {
		localViolation(b, verbs.OpCompareSwap, constant)
	}},
	{"a write and a send from a region without rights", func(b *bench) {
		near, far := b.pair(sizes{})
		to, mine := far.allocate(64, all), near.allocate(64, 0)
		data := noise(1, 64)
		mine.store(0, data)
		far.receive(1, to.at(32, 64))
		w, s := to.write(1, 0, mine.at(0, 32)), send(2, mine.at(32, 64))
		near.post(w, s)
		near.expectSent(done(w), done(s))
		to.expect(data, "a write and a send from a region without rights")
	}},
	{"a receive into a region without LocalWrite", func(b *bench) {
		near, far := b.two()
		p, pf := connected(near, far, sizes{})
		q, _ := connected(near, far, sizes{})
		mine, from := near.allocate(64, verbs.RemoteRead), far.allocate(64, all)
		want := noise(1, 64)
		mine.store(0, want)
		from.fill(2)
		if _, err := p.tryReceive(slot{1, []segment{mine.every()}}); err != nil {
			p.quiet()
			p.expectReady()
			return
		}
		pf.post(send(2, from.every()))
		p.expectReceived(failed(1, verbs.StatusLocalProtection))
		pf.expectFailure(pf.sent(1)[0], 2)
		p.expectError()
		pf.expectError()
		mine.expect(want, "a receive into a region without LocalWrite")
		q.expectReady()
	}},
	{"an atomic between words", func(b *bench) {
		for offset := 1; offset < 8; offset++ {
			near, far := b.pair(sizes{})
			to, mine := far.allocate(64, all), near.allocate(64, all)
			want := to.fill(1)
			if !near.refuses(to.fetchAdd(1, 8+offset, 1, mine.at(0, 8))) {
				near.expectStatus(1, verbs.StatusRemoteInvalid, verbs.StatusRemoteAccess, verbs.StatusRemoteOperation)
			}
			to.expect(want, "an atomic between words")
		}
	}},
	{"an atomic whose segment is not 8 bytes", func(b *bench) {
		for _, lengths := range [][]int{{}, {0}, {4}, {7}, {9}, {16}, {8, 8}, {4, 4}, {8, 0}} {
			near, far := b.pair(sizes{})
			if len(lengths) > near.device.Attributes().MaxSegments {
				continue
			}
			to, mine := far.allocate(64, all), near.allocate(64, all)
			want, data := to.fill(1), mine.fill(2)
			w := to.fetchAdd(1, 0, 1, segment{})
			w.Named = nil
			for i, n := range lengths {
				w.Named = append(w.Named, mine.at(32*i, 32*i+n))
			}
			near.expectRefusal(w)
			to.expect(want, "an atomic with a segment that is not 8 bytes")
			mine.expect(data, "an atomic with a segment that is not 8 bytes, at the requester")
		}
	}},
	{"an opcode that cannot be posted", func(b *bench) {
		for _, opcode := range []verbs.Opcode{verbs.OpReceive, verbs.OpReceiveImmediate, verbs.OpReceiveImmediate + 1, 255} {
			near, far := b.pair(sizes{})
			to, mine := far.allocate(64, all), near.allocate(64, all)
			want := to.fill(1)
			w := to.write(1, 0, mine.every())
			w.Opcode = opcode
			near.expectRefusal(w)
			to.expect(want, "an opcode that cannot be posted")
		}
	}},
	{"a flag that there is not", func(b *bench) {
		for _, flag := range []verbs.Flags{verbs.Fence << 1, 1 << 7} {
			near, far := b.pair(sizes{})
			to, mine := far.allocate(64, all), near.allocate(64, all)
			want := to.fill(1)
			w := to.write(1, 0, mine.every())
			w.Flags |= flag
			near.expectRefusal(w)
			to.expect(want, "a flag that there is not")
		}
	}},
	{"a malformed request in the middle of a batch", func(b *bench) {
		near, far := b.pair(sizes{})
		to, mine := far.allocate(64, all), near.allocate(64, all)
		want, data := to.fill(1), mine.fill(2)
		first, bad, last := to.write(1, 0, mine.at(0, 8)), to.write(2, 8, mine.at(8, 16)), to.write(3, 16, mine.at(16, 24))
		bad.Opcode = 255
		copy(want, data[:8])
		n, err := near.try(first, bad, last)
		switch {
		case n == 1 && err != nil:
			near.expectSent(done(first))
			near.quiet()
			near.post(last)
			near.expectSent(done(last))
			copy(want[16:], data[16:24])
		case n == 3:
			near.expectSent(done(first))
			near.expectStatus(2, verbs.StatusLocalProtection, verbs.StatusLocalLength, verbs.StatusRemoteInvalid, verbs.StatusRemoteOperation)
			near.expectSent(failed(3, verbs.StatusFlushed))
		default:
			b.Fatalf("PostSend of a good, a malformed and a good request took %d, error %v", n, err)
		}
		to.expect(want, "a malformed request in the middle of a batch")
	}},
	{"a message longer than MaxMessage", func(b *bench) {
		near, far := b.pair(sizes{})
		attributes := near.device.Attributes()
		// One area many times is as long as many areas, and most of it is never touched.
		size := attributes.MaxMessage/attributes.MaxSegments + 1
		mine, to := near.allocate(size, all), far.allocate(size, all)
		mine.store(0, noise(1, 64))
		begin := to.register(0, 64, all)
		long := func(a *area) []segment { return slices.Repeat([]segment{a.every()}, attributes.MaxSegments) }
		// If a receive may be that long, the message is refused only for its own length.
		far.tryReceive(slot{1, long(to)})
		near.expectRefusal(send(1, long(mine)...))
		begin.expect(make([]byte, 64), "a message longer than MaxMessage")
	}},
}

// constant returns memory that may only be read.
func constant(mine, _ *area) verbs.Segment {
	part := mine.register(0, 32, 0)
	return verbs.Segment{Memory: part.memory()[:8], LKey: part.lkey()}
}

// localViolation posts an operation with a bad segment.
func localViolation(b *bench, opcode verbs.Opcode, bad func(mine, other *area) verbs.Segment) {
	b.Helper()
	near, far := b.two()
	p, pf := connected(near, far, sizes{})
	q, _ := connected(near, far, sizes{})
	to, mine, other := far.allocate(64, all), near.allocate(64, all), near.allocate(64, all)
	want, mineBefore, otherBefore := to.fill(1), mine.fill(2), other.fill(3)
	pf.receive(1, to.every())
	w := to.work(1, opcode, 0)
	w.Segments = []verbs.Segment{bad(mine, other)}
	p.expectProtection(w)
	to.expect(want, "a request with a bad segment")
	mine.expect(mineBefore, "a request with a bad segment, at the requester")
	other.expect(otherBefore, "a request with a bad segment, in another region")
	r := to.read(2, 0, mine.at(0, 8))
	q.post(r)
	q.expectSent(done(r))
}
