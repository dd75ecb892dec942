package verbstest

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/verbs"
)

// The end of a queue pair or device is detected, and affects nothing else.
var closeCases = []testCase{
	{"a closed queue pair is seen by its peer", func(b *bench) {
		near, far := b.two()
		p, pf := connected(near, far, sizes{})
		q, qf := connected(near, far, sizes{})
		p.receive(1)
		p.receive(2)
		pf.close()
		p.expectDisconnected()
		p.expectReceived(failed(1, verbs.StatusFlushed), failed(2, verbs.StatusFlushed))
		p.expectFlushed()
		q.expectReady()
		qf.expectReady()
		w := send(1)
		q.post(w)
		qf.receive(2)
		qf.expectReceived(got(2, 0))
		q.expectSent(done(w))
	}},
	{"a queue pair closed by the side that connected", func(b *bench) {
		near, far := b.pair(sizes{})
		far.receive(1)
		near.close()
		far.expectDisconnected()
		far.expectReceived(failed(1, verbs.StatusFlushed))
	}},
	{"sends that wait for receives when the peer closes", func(b *bench) {
		near, far := b.pair(sizes{})
		from := near.allocate(300_000, all)
		for i := range uint64(10) {
			near.post(send(i, from.every()))
		}
		far.close()
		near.expectDisconnected()
		for i, c := range near.sent(10) {
			if c.ID != uint64(i) {
				b.Fatalf("completion %d is %+v", i, c)
			}
		}
		near.quiet()
	}},
	{"what was posted before the peer closes ends once", func(b *bench) {
		near, far := b.two()
		cleanEnd(near, far, (*pair).close)
		cleanEnd(far, near, (*pair).close)
	}},
	{"a severed connection has ended cleanly on both sides", func(b *bench) {
		near, far := b.two()
		probe, _ := connected(near, far, sizes{})
		_, ok := probe.queuePair().(verbs.Severer)
		b.skipUnless(ok, "its queue pairs are no Severer")
		for _, sides := range [][2]*rank{{near, far}, {far, near}} {
			p := cleanEnd(sides[0], sides[1], (*pair).sever)
			p.expectDisconnected()
			p.expectFlushed()
			p.sever()
			p.close()
		}
		probe.expectReady()
	}},
	{"after a severance nothing of the peer is carried out", func(b *bench) {
		near, far := b.pair(sizes{})
		severer, ok := near.queuePair().(verbs.Severer)
		b.skipUnless(ok, "its queue pairs are no Severer")
		mine, theirs := near.allocate(64, all), far.allocate(64, all)
		before := theirs.fill(1)
		w := mine.write(1, 0, theirs.every())
		far.post(w)
		far.expectSent(done(w))
		severer.Sever()
		if state, err := near.state(); state != verbs.StateError || !errors.Is(err, verbs.ErrDisconnected) {
			b.Fatalf("after Sever the state is %d, error %v; want StateError and ErrDisconnected", state, err)
		}
		theirs.fill(2)
		late := mine.write(2, 0, theirs.every())
		far.post(late)
		far.expectDisconnected()
		far.expectEnded(late)
		mine.expect(before, "a write after Sever")
	}},
	{"a closed queue pair takes nothing", func(b *bench) {
		near, _ := b.pair(sizes{})
		near.close()
		near.close()
		if n, err := near.try(send(1)); n != 0 || !errors.Is(err, verbs.ErrClosed) {
			b.Errorf("PostSend took %d, error %v; want ErrClosed", n, err)
		}
		if n, err := near.tryReceive(slot{ID: 1}); n != 0 || !errors.Is(err, verbs.ErrClosed) {
			b.Errorf("PostReceive took %d, error %v; want ErrClosed", n, err)
		}
		if state, _ := near.state(); state != verbs.StateError {
			b.Errorf("the state is %d, want StateError", state)
		}
	}},
	{"completion queues close after their queue pairs", func(b *bench) {
		near, far := b.pair(sizes{})
		near.close()
		b.check(near.station.closeQueue(near.held().sends), "closing the send queue")
		b.check(near.station.closeQueue(near.held().receives), "closing the receive queue")
		connected(near.rank, far.rank, sizes{})
	}},
	{"a completion queue with queue pairs does not close", func(b *bench) {
		near, _ := b.pair(sizes{})
		for _, queue := range []verbs.CompletionQueue{near.held().sends, near.held().receives} {
			if err := queue.Close(); err == nil {
				b.Error("a completion queue of a queue pair was closed")
			}
		}
		near.expectReady()
	}},
	{"a closed completion queue takes no queue pair", func(b *bench) {
		near, far := b.two()
		_, config, err := near.station.queues(sizes{})
		b.check(err, "creating completion queues")
		b.check(near.station.closeQueue(config.SendQueue), "Close")
		b.check(config.SendQueue.Close(), "a second Close")
		for what, config := range map[string]verbs.QueuePairConfig{
			"sends":    config,
			"receives": {SendQueue: config.ReceiveQueue, ReceiveQueue: config.SendQueue},
		} {
			if _, err := near.device.Connect(far.address, nil, config); !errors.Is(err, verbs.ErrClosed) {
				b.Errorf("Connect with a closed queue for %s: %v; want ErrClosed", what, err)
			}
		}
		b.check(near.station.closeQueue(config.ReceiveQueue), "Close of a queue whose queue pairs were rejected")
	}},
	{"many queue pairs one after the other", func(b *bench) {
		near, far := b.two()
		mine, theirs := near.allocate(64, all), far.allocate(64, all)
		for i := range uint64(testsize.N(25)) {
			p, q := connected(near, far, sizes{})
			want := mine.fill(i)
			w := theirs.write(i, 0, mine.every())
			p.post(w)
			p.expectSent(done(w))
			theirs.expect(want, "a write through a new queue pair")
			p.close()
			q.close()
		}
	}},
	{"a closed device is seen by its peers", func(b *bench) {
		near, far := b.two()
		other := b.far()
		p, _ := connected(near, far, sizes{})
		_, _ = connected(far, near, sizes{})
		q, _ := connected(near, other, sizes{})
		p.receive(1)
		far.must(closeDeviceStep{})
		far.must(closeDeviceStep{})
		p.expectGone(false)
		p.expectReceived(failed(1, verbs.StatusFlushed))
		p.expectFlushed()
		q.expectReady()
		theirs, mine := other.allocate(8, all), near.allocate(8, all)
		w := theirs.write(1, 0, mine.every())
		q.post(w)
		q.expectSent(done(w))
	}},
	{"a dead device is seen by who sends to it", func(b *bench) {
		near, far := b.two()
		other := b.far()
		p, _ := connected(near, far, sizes{})
		q, _ := connected(near, other, sizes{})
		theirs, mine := far.allocate(8, all), near.allocate(8, all)
		crashed := far.driver.kill()
		p.post(send(1), theirs.write(2, 0, mine.every()), send(3))
		p.expectGone(crashed)
		if last := p.sent(3)[2]; last.ID != 3 {
			b.Fatalf("the last of three completions is %+v", last)
		}
		p.expectFlushed()
		q.expectReady()
	}},
	{"a closed device rejects requests", func(b *bench) {
		near := b.near()
		d := near.device
		mine := near.allocate(64, all)
		_, config, err := near.station.queues(sizes{})
		b.check(err, "creating completion queues")
		open := d.Now()
		b.check(near.station.close(), "Close")
		b.check(d.Close(), "a second Close")
		if closed := d.Now(); closed < open {
			b.Errorf("Now of a closed device is %v; it was %v", closed, open)
		}
		_, allocate := d.AllocateMemory(64)
		_, register := d.RegisterMemory(make([]byte, 64), 0)
		_, create := d.CreateCompletionQueue(1)
		_, connect := d.Connect(d.Address(), nil, config)
		for what, err := range map[string]error{
			"AllocateMemory": allocate, "RegisterMemory": register, "CreateCompletionQueue": create,
			"Connect": connect, "Deregister": near.station.area(mine.handle).region.Deregister(),
		} {
			if !errors.Is(err, verbs.ErrClosed) {
				b.Errorf("%s of a closed device: %v; want ErrClosed", what, err)
			}
		}
		if n := d.PollConnections(make([]verbs.ConnectionRequest, 1)); n != 0 {
			b.Errorf("PollConnections of a closed device: %d", n)
		}
		if n := config.SendQueue.Poll(make([]verbs.Completion, 1)); n != 0 {
			b.Errorf("Poll of a closed device: %d", n)
		}
	}},
	{"a watcher is told once of a device that is closed", func(b *bench) {
		watchDeath(b, func(far *rank) { far.must(closeDeviceStep{}) })
	}},
	{"a watcher is told once of a device that dies", func(b *bench) {
		watchDeath(b, func(far *rank) { far.driver.kill() })
	}},
	{"a watcher is told of a device that is gone already", func(b *bench) {
		near, far := b.two()
		watcher := able[verbs.Watcher](near)
		far.must(closeDeviceStep{})
		near.watch(watcher, far).await(1)
	}},
	{"a watch that was stopped tells nothing", func(b *bench) {
		near, far := b.two()
		watcher := able[verbs.Watcher](near)
		first, second := near.watch(watcher, far), near.watch(watcher, far)
		first.stop()
		far.must(closeDeviceStep{})
		second.await(1)
		near.watch(watcher, far).await(1)
		near.rest()
		if n := first.count.Load(); n != 0 {
			b.Fatalf("a watch that was stopped told %d deaths", n)
		}
	}},
}

// cleanEnd connects two ranks, makes one side end the connection while requests of both wait, and checks what the other
// side learns. It returns the end of the side that leaves.
func cleanEnd(leaves, stays *rank, end func(*pair)) *pair {
	leaves.Helper()
	p, q := connected(stays, leaves, sizes{})
	mine, theirs := p.allocate(100_000, all), q.allocate(100_000, all)
	works := []work{
		theirs.write(1, 0, mine.every()), send(2, mine.every()), theirs.read(3, 0, mine.every()),
		theirs.write(4, 0, mine.every()), send(5),
	}
	p.post(works...)
	p.receive(11)
	p.receive(12)
	end(q)
	p.expectDisconnected()
	p.expectEnded(works...)
	p.expectReceived(failed(11, verbs.StatusFlushed), failed(12, verbs.StatusFlushed))
	p.expectFlushed()
	p.quiet()
	return q
}

func watchDeath(b *bench, end func(far *rank)) {
	near, far := b.two()
	other := b.far()
	watcher := able[verbs.Watcher](near)
	p, _ := connected(near, far, sizes{})
	first, second, alive := near.watch(watcher, far), near.watch(watcher, far), near.watch(watcher, other)
	p.post(send(1))
	for _, seen := range []*sighting{first, second, alive} {
		if n := seen.count.Load(); n != 0 {
			b.Fatalf("%d deaths were told while everyone lived", n)
		}
	}
	end(far)
	first.await(1)
	second.await(1)
	p.expectError()
	near.watch(watcher, far).await(1)
	other.must(closeDeviceStep{})
	alive.await(1)
	near.rest()
	for _, seen := range []*sighting{first, second, alive} {
		if n := seen.count.Load(); n != 1 {
			b.Fatalf("one death was told %d times", n)
		}
	}
}

// A sighting counts the reports of a watch.
type sighting struct {
	*rank
	of    string
	count atomic.Int32
	cause atomic.Value
	stop  func()
}

func (r *rank) watch(watcher verbs.Watcher, peer *rank) *sighting {
	r.Helper()
	seen := &sighting{rank: r, of: peer.address}
	stop, err := watcher.Watch(peer.address, func(cause error) {
		if cause == nil {
			cause = errors.New("no cause")
		}
		seen.cause.Store(faultOf(cause))
		seen.count.Add(1)
		r.device.Channel().Wake()
	})
	r.check(err, "Watch")
	seen.stop = stop
	return seen
}

// await waits for n reports of deaths.
func (seen *sighting) await(n int32) {
	seen.Helper()
	err := seen.station.await(fmt.Sprintf("the death of %s", seen.of), func() bool { return seen.count.Load() >= n })
	seen.check(err, "waiting for a Watch")
	if cause := seen.cause.Load().(*fault); !errors.Is(cause, verbs.ErrPeerGone) {
		seen.Fatalf("the cause of a death is %q; want ErrPeerGone", cause)
	}
}

// rest gives events that should not happen time to happen.
func (r *rank) rest() {
	channel := r.device.Channel()
	for range 20 {
		ticket := channel.Prepare()
		r.station.config.sleep(r.device, ticket, time.Millisecond)
		channel.Finish()
	}
}
