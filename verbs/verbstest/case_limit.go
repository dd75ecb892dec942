package verbstest

import (
	"errors"
	"fmt"

	"github.com/onesided/rma/verbs"
)

// A request that does not fit is refused, or fails with an error, and is never lost.
var limitCases = []testCase{
	{"inline data is the caller's again at once", func(b *bench) {
		near, far := b.pair(sizes{})
		most := near.device.Attributes().MaxInline
		b.skipUnless(most > 0, "the device carries no inline data")
		to := far.allocate(4*most, all)
		for n := 0; n <= most; n += 1 + n/8 {
			want, data := to.fill(uint64(n)), noise(uint64(n)+1, n)
			works := []work{
				to.write(1, 0).inline(data).silent(),
				send(2).inline(data),
				to.writeImmediate(3, 2*most, uint32(n)).inline(data),
				sendImmediate(4, uint32(n)+1).inline(data),
			}
			// post overwrites the data as soon as PostSend has returned. Here the sends have no receive yet.
			near.post(works...)
			far.receiveAll(slot{1, []segment{to.at(most, 2*most)}}, slot{ID: 2}, slot{3, []segment{to.at(3*most, 4*most)}})
			far.expectReceived(got(1, n), gotImmediate(2, n, uint32(n)), gotImmediate(3, n, uint32(n)+1))
			near.expectSent(done(works[1]), done(works[2]), done(works[3]))
			for i := range 4 {
				copy(want[i*most:], data)
			}
			to.expect(want, fmt.Sprintf("inline requests with %d bytes", n))
		}
	}},
	{"inline data is gathered", func(b *bench) {
		near, far := b.pair(sizes{})
		attributes := near.device.Attributes()
		b.skipUnless(attributes.MaxInline >= 3 && attributes.MaxSegments >= 3, "the device carries no three segments inline")
		most := attributes.MaxInline
		to := far.allocate(most, all)
		data := noise(1, most)
		w := to.write(1, 0).inline(data, 1, 0, most-1)
		near.post(w)
		near.expectSent(done(w))
		to.expect(data, "an inline write of three segments")
	}},
	{"inline data before acceptance", func(b *bench) {
		near, far := b.two()
		most := near.device.Attributes().MaxInline
		b.skipUnless(most > 0, "the device carries no inline data")
		to := far.allocate(most, all)
		data := noise(1, most)
		p := near.connect(far, "inline", sizes{})
		w := to.write(1, 0).inline(data)
		p.post(w)
		far.accept("inline", sizes{})
		p.expectSent(done(w))
		to.expect(data, "an inline write posted before acceptance")
	}},
	{"too much inline data is rejected", func(b *bench) {
		near, far := b.pair(sizes{})
		most := near.device.Attributes().MaxInline
		b.skipUnless(most < 1<<24, "the device's inline data has no limit that can be reached")
		to := far.allocate(most+2, all)
		want := to.fill(1)
		near.expectInlineRefusal(to.write(1, 0).inline(noise(2, most+1)))
		near.expectInlineRefusal(send(2).inline(noise(3, most+1)))
		to.expect(want, "inline requests that are too long")
	}},
	{"inline reads and atomics are rejected", func(b *bench) {
		near, far := b.pair(sizes{})
		to := far.allocate(8, all)
		want := to.fill(1)
		near.expectInlineRefusal(to.read(1, 0).inline(make([]byte, 8)))
		add := to.fetchAdd(2, 0, 1, segment{}).inline(make([]byte, 8))
		near.expectInlineRefusal(add)
		to.expect(want, "inline reads and atomics")
	}},
	{"a message longer than its receive", func(b *bench) {
		for _, lengths := range [][2]int{{1, 0}, {65, 64}, {5000, 4999}, {1 << 20, 64}, {200_000, 100_000}} {
			near, far := b.pair(sizes{})
			long, short := lengths[0], lengths[1]
			from, to := near.allocate(long, all), far.allocate(long+8, all)
			from.fill(1)
			want := to.fill(2)
			far.receiveAll(slot{1, []segment{to.at(4, 4+short/2), to.at(4+short/2, 4+short)}}, slot{2, []segment{to.at(0, 4)}})
			near.post(send(1, from.every()), send(2, from.at(0, 1)))
			near.expectSent(failed(1, verbs.StatusRemoteInvalid), failed(2, verbs.StatusFlushed))
			far.expectReceived(failed(1, verbs.StatusLocalLength), failed(2, verbs.StatusFlushed))
			near.expectError()
			far.expectError()
			after := to.load()
			copy(want[4:4+short], after[4:]) // what the receive named may have been written
			if difference := differ(after, want); difference != "" {
				b.Fatalf("after a message of %d bytes for a receive of %d: %s", long, short, difference)
			}
		}
	}},
	{"a message longer than its receive, which is posted later", func(b *bench) {
		near, far := b.pair(sizes{})
		from, to := near.allocate(1000, all), far.allocate(1000, all)
		near.post(send(1, from.every()), send(2, from.every()))
		far.receive(1, to.every())
		far.expectReceived(got(1, 1000))
		far.receive(2, to.at(0, 999))
		far.expectReceived(failed(2, verbs.StatusLocalLength))
		far.expectError()
		near.expectError()
	}},
	{"more requests than MaxSends wait for acceptance", func(b *bench) {
		near, far := b.two()
		from, to := near.allocate(64, all), far.allocate(64, all)
		want := from.fill(1)
		p := near.connect(far, "full", sizes{MaxSends: 4})
		var works []work
		for i := range 6 {
			works = append(works, to.write(uint64(i), 8*i, from.at(8*i, 8*i+8)))
		}
		p.post(works[:3]...)
		p.expectFull(1, works[3:]...)
		p.expectFull(0, works[4:]...)
		far.accept("full", sizes{})
		for _, w := range works[:4] {
			p.expectSent(done(w))
		}
		p.post(works[4:]...)
		p.expectSent(done(works[4]), done(works[5]))
		if difference := differ(to.load()[:48], want[:48]); difference != "" {
			b.Fatal(difference)
		}
		p.quiet()
	}},
	{"more unsignalled requests than MaxSends", func(b *bench) {
		near, far := b.pair(sizes{MaxSends: 4})
		from, to := near.allocate(8, all), far.allocate(8, all)
		w := to.write(1, 0, from.every())
		for range 3 {
			near.post(w.silent(), w.silent(), w.silent(), w)
			near.expectSent(done(w))
		}
		near.post(w.silent())
		near.expectFull(3, w.silent(), w.silent(), w.silent(), w.silent(), w.silent())
		near.expectFull(0, w)
		near.quiet()
		near.expectReady()
	}},
	{"more receives than MaxReceives", func(b *bench) {
		near, far := b.pair(sizes{MaxReceives: 3})
		mine := near.allocate(8, all)
		slots := []slot{{ID: 1}, {ID: 2}, {ID: 3}, {ID: 4}, {ID: 5}}
		n, err := near.tryReceive(slots...)
		if n != 3 || !errors.Is(err, verbs.ErrQueueFull) {
			b.Fatalf("PostReceive of 5 with room for 3 took %d, error %v", n, err)
		}
		from := far.allocate(8, all)
		far.post(send(1), send(2), send(3))
		near.expectReceived(got(1, 0), got(2, 0), got(3, 0))
		near.receiveAll(slot{4, []segment{mine.every()}}, slot{ID: 5})
		far.post(send(4, from.every()))
		near.expectReceived(got(4, 8))
	}},
	{"a batch far larger than the queue", func(b *bench) {
		near, far := b.pair(sizes{})
		from, to := near.allocate(8, all), far.allocate(8, all)
		w := to.write(1, 0, from.every()).silent()
		works := make([]work, 10_000)
		for i := range works {
			works[i] = w
		}
		near.expectFull(128, works...)
	}},
	{"nothing is posted and nothing polled", func(b *bench) {
		near, _ := b.pair(sizes{})
		near.post()
		near.receiveAll()
		for _, queue := range []verbs.CompletionQueue{near.station.queue(near.handle, false), near.station.queue(near.handle, true)} {
			if n := queue.Poll(nil); n != 0 {
				b.Fatalf("Poll(nil) is %d", n)
			}
		}
		near.quiet()
		near.expectReady()
	}},
	{"a completion queue holds its capacity", func(b *bench) {
		near, far := b.pair(sizes{Capacity: 5})
		from, to := near.allocate(8, all), far.allocate(8, all)
		for range 4 {
			var works []work
			for i := range uint64(5) {
				works = append(works, to.write(i, 0, from.every()))
			}
			near.post(works...)
			for _, w := range works {
				near.expectSent(done(w))
			}
		}
		near.expectReady()
	}},
	{"a queue of sends overflows", func(b *bench) {
		near, far := b.two()
		p, _ := connected(near, far, sizes{Capacity: 4, MaxSends: 600})
		beside, _ := connected(near, far, sizes{Beside: p.handle + 1})
		q, _ := connected(near, far, sizes{})
		from, to := near.allocate(16, all), far.allocate(8, all)
		from.store(0, noise(1, 16))
		to.fill(2)
		posted := 0
		for posted < 512 {
			w := to.write(uint64(posted), 0, from.at(0, 8))
			if _, err := p.try(w); err != nil {
				if !errors.Is(err, verbs.ErrQueueFull) {
					b.Fatalf("PostSend, while the completion queue fills: %v", err)
				}
				break
			}
			posted++
			// Reading through another queue gives the first one time to fill.
			r := to.read(1, 0, from.at(8, 16))
			q.post(r)
			q.expectSent(done(r))
			if state, _ := p.state(); state == verbs.StateError {
				break
			}
		}
		if state, err := p.state(); state == verbs.StateError {
			if err == nil {
				b.Fatal("the queue pair has failed and does not say why")
			}
			// The full queue cannot take the completions of others either.
			beside.post(to.write(1, 0, from.at(0, 8)))
			beside.expectError()
			q.expectReady()
			return
		}
		for i, c := range p.sent(posted) {
			if c.ID != uint64(i) || c.Status != verbs.StatusSuccess {
				b.Fatalf("the queue pair is in order, but completion %d of %d was lost: %+v", i, posted, c)
			}
		}
	}},
	{"a queue of receives overflows", func(b *bench) {
		near, far := b.two()
		p := near.connect(far, "receives", sizes{MaxSends: 64})
		pf := far.accept("receives", sizes{Capacity: 4, MaxReceives: 64})
		q, qf := connected(near, far, sizes{})
		for i := range uint64(64) {
			pf.receive(i)
		}
		for i := range uint64(64) {
			// Once the far side has failed, sends fail, and later ones are flushed.
			p.post(send(i))
			p.sent(1)
		}
		qf.receive(1)
		w := send(1)
		q.post(w)
		qf.expectReceived(got(1, 0))
		q.expectSent(done(w))
		if state, err := pf.state(); state == verbs.StateError {
			if err == nil {
				b.Fatal("the queue pair has failed and does not say why")
			}
			p.expectError()
			return
		}
		for i, c := range pf.received(64) {
			if c.ID != uint64(i) || c.Status != verbs.StatusSuccess {
				b.Fatalf("the queue pair is in order, but completion %d was lost: %+v", i, c)
			}
		}
	}},
}

// expectFull posts works of which n have room.
func (p *pair) expectFull(n int, works ...work) {
	p.Helper()
	took, err := p.try(works...)
	if took != n || !errors.Is(err, verbs.ErrQueueFull) {
		p.Fatalf("PostSend of %d with room for %d took %d, error %v; want ErrQueueFull", len(works), n, took, err)
	}
}

// expectInlineRefusal posts an inline request that the device cannot take. The device must refuse it at once, because
// the data belongs to the caller afterwards.
func (p *pair) expectInlineRefusal(w work) {
	p.Helper()
	if n, err := p.try(w); n != 0 || errors.Is(err, verbs.ErrQueueFull) {
		p.Fatalf("PostSend of an inline request that cannot be took %d, error %v", n, err)
	}
	p.quiet()
	p.expectReady()
}
