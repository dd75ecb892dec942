package verbstest

import (
	"encoding/gob"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/onesided/rma/verbs"
)

// Connections are made, refused and missed.
var connectCases = []testCase{
	{"the hello arrives as it was said", func(b *bench) {
		near, far := b.two()
		hellos := []string{"", "x", "\x00", "a\x00b", strings.Repeat("\xff", verbs.MaxHello), string(noise(1, verbs.MaxHello)), " \n"}
		for _, hello := range hellos {
			p := near.connect(far, hello, sizes{})
			q := far.accept(hello, sizes{})
			p.await(verbs.StateReady)
			q.expectReady()
		}
	}},
	{"the hello is the caller's again", func(b *bench) {
		near, far := b.two()
		_, config, err := near.station.queues(sizes{})
		b.check(err, "creating completion queues")
		hello := []byte("once")
		_, err = near.device.Connect(far.address, hello, config)
		b.check(err, "Connect")
		copy(hello, "gone")
		far.accept("once", sizes{})
	}},
	{"a hello that is too long is rejected", func(b *bench) {
		near, far := b.two()
		a := near.may(connectStep{Address: far.address, Hello: noise(1, verbs.MaxHello+1)})
		if a.Err == nil {
			b.Fatalf("Connect took a hello of %d bytes", verbs.MaxHello+1)
		}
		connected(near, far, sizes{})
	}},
	{"requests are kept until they are polled", func(b *bench) {
		near, far := b.two()
		mine, theirs := near.allocate(8, all), far.allocate(160, all)
		mine.fill(1)
		var ends []*pair
		for i := range 20 {
			ends = append(ends, near.connect(far, fmt.Sprint("end ", i), sizes{}))
		}
		for i, p := range slices.Backward(ends) {
			q := far.accept(fmt.Sprint("end ", i), sizes{})
			q.receive(uint64(i), theirs.at(8*i, 8*i+8))
			p.await(verbs.StateReady)
			w := sendImmediate(1, uint32(i), mine.every())
			p.post(w)
			q.expectReceived(gotImmediate(uint64(i), 8, uint32(i)))
			p.expectSent(done(w))
		}
	}},
	{"there is nothing to poll", func(b *bench) {
		near := b.near()
		if n := near.device.PollConnections(make([]verbs.ConnectionRequest, 4)); n != 0 {
			b.Fatalf("a new device has %d requests to connect", n)
		}
		if n := near.device.PollConnections(nil); n != 0 {
			b.Fatalf("PollConnections(nil) is %d", n)
		}
	}},
	{"polling with room for one leaves the others", func(b *bench) {
		target, maker := b.two()
		const count = 5
		for i := range count {
			maker.connect(target, fmt.Sprint(i), sizes{})
		}
		var heard []string
		err := target.station.await("the last of five requests to connect", func() bool {
			var into [1]verbs.ConnectionRequest
			for target.device.PollConnections(into[:]) == 1 {
				heard = append(heard, string(into[0].Hello()))
			}
			return len(heard) >= count
		})
		b.check(err, "PollConnections")
		slices.Sort(heard)
		if got := strings.Join(heard, " "); got != "0 1 2 3 4" {
			b.Fatalf("heard the hellos %s", got)
		}
	}},
	{"requests wait for acceptance", func(b *bench) {
		near, far := b.two()
		mine, theirs := near.allocate(100, all), far.allocate(100, all)
		want, mineWant := theirs.fill(1), mine.fill(2)
		p := near.connect(far, "wait", sizes{})
		if state, err := p.state(); state != verbs.StateConnecting || err != nil {
			b.Fatalf("before acceptance the state is %d, error %v", state, err)
		}
		p.receive(1, mine.at(50, 100))
		w, s := theirs.write(2, 0, mine.at(0, 40)), sendImmediate(3, 4, mine.at(40, 50))
		r := theirs.read(5, 60, mine.at(0, 40)).fenced()
		p.post(w, s, r)
		theirs.expect(want, "a write before acceptance")
		p.quiet()
		q := far.accept("wait", sizes{})
		q.receive(6, theirs.at(40, 50))
		q.expectReceived(gotImmediate(6, 10, 4))
		p.expectSent(done(w), done(s), done(r))
		copy(want, mineWant[:50])
		theirs.expect(want, "requests posted before acceptance")
		copy(mineWant, want[60:])
		q.post(send(7, theirs.at(0, 50)))
		p.expectReceived(got(1, 50))
		copy(mineWant[50:], want)
		mine.expect(mineWant, "requests posted before acceptance, at the requester")
		// The acceptance of one of several rails may arrive after requests on another have completed.
		p.await(verbs.StateReady)
		p.expectReady()
	}},
	{"the accepting side may send first", func(b *bench) {
		near, far := b.two()
		mine, theirs := near.allocate(8, all), far.allocate(8, all)
		data := theirs.fill(1)
		p := near.connect(far, "first", sizes{})
		q := far.accept("first", sizes{})
		w := send(1, theirs.every())
		q.post(w)
		p.receive(2, mine.every())
		p.expectReceived(got(2, 8))
		q.expectSent(done(w))
		mine.expect(data, "a send by the accepting side")
	}},
	{"a rejection gives its reason", func(b *bench) {
		near, far := b.two()
		other, otherFar := connected(near, far, sizes{})
		p := near.connect(far, "no", sizes{})
		p.post(send(1).silent(), send(2))
		p.receive(3)
		far.must(rejectStep{[]byte("no"), "the house is full"})
		err := p.expectError()
		if !errors.Is(err, verbs.ErrRejected) || !strings.Contains(err.Error(), "the house is full") {
			b.Fatalf("the error of a rejected connection is %q", err)
		}
		p.expectSent(failed(1, verbs.StatusFlushed), failed(2, verbs.StatusFlushed))
		p.expectReceived(failed(3, verbs.StatusFlushed))
		p.expectFlushed()
		other.expectReady()
		otherFar.expectReady()
		connected(near, far, sizes{})
	}},
	{"addresses where nobody is", func(b *bench) {
		near, far := b.two()
		gone := b.near()
		b.check(gone.station.close(), "Close")
		for _, address := range []string{
			"", " ", "nobody", far.address + "x", far.address[:len(far.address)-1], strings.Repeat("a", 300),
			"a b", "\x00", "../../etc", gone.address,
		} {
			near.expectUnconnected(address)
		}
		connected(near, far, sizes{})
	}},
	{"a device that was closed", func(b *bench) {
		near, far := b.two()
		connected(near, far, sizes{})
		far.must(closeDeviceStep{})
		near.expectUnconnected(far.address)
	}},
	{"a device that has died", func(b *bench) {
		near, far := b.two()
		far.driver.kill()
		near.expectUnconnected(far.address)
	}},
	{"a device that is closed before it accepts", func(b *bench) {
		near, far := b.two()
		p := near.connect(far, "late", sizes{})
		p.post(send(1))
		far.must(closeDeviceStep{})
		p.expectError()
		p.expectSent(failed(1, verbs.StatusFlushed))
		p.expectFlushed()
	}},
	{"a device that dies before it accepts", func(b *bench) {
		near, far := b.two()
		p := near.connect(far, "late", sizes{})
		far.driver.kill()
		p.expectError()
		p.expectFlushed()
	}},
	{"a request whose maker has closed it", func(b *bench) {
		near, far := b.two()
		p := near.connect(far, "withdrawn", sizes{})
		p.close()
		connected(near, far, sizes{})
		far.must(staleStep{[]byte("withdrawn")})
	}},
	{"a request whose maker has died", func(b *bench) {
		target, maker := b.two()
		maker.connect(target, "orphan", sizes{})
		err := target.station.await("a request to connect", func() bool { return target.station.find([]byte("orphan")) != nil })
		b.check(err, "PollConnections")
		maker.connect(target, "orphan", sizes{})
		maker.driver.kill()
		connected(b.near(), target, sizes{})
		target.must(staleStep{[]byte("orphan")})
	}},
	{"a configuration that cannot be", func(b *bench) {
		near, far := b.two()
		third := b.near()
		_, good, err := near.station.queues(sizes{})
		b.check(err, "creating completion queues")
		_, foreign, err := third.station.queues(sizes{})
		b.check(err, "creating completion queues")
		for what, config := range map[string]verbs.QueuePairConfig{
			"no queues":                  {},
			"no send queue":              {ReceiveQueue: good.ReceiveQueue},
			"no receive queue":           {SendQueue: good.SendQueue},
			"the queue of another":       foreign,
			"a negative number of sends": {SendQueue: good.SendQueue, ReceiveQueue: good.ReceiveQueue, MaxSends: -1},
		} {
			if _, err := near.device.Connect(far.address, nil, config); err == nil {
				b.Errorf("Connect took a configuration with %s", what)
			}
		}
		connected(near, far, sizes{})
	}},
}

// expectUnconnected fails the case unless connecting to an address fails, at once or later.
func (r *rank) expectUnconnected(address string) {
	r.Helper()
	a := r.may(connectStep{Address: address, Hello: []byte("anybody?")})
	if a.Err != nil {
		return
	}
	p := &pair{r, a.Handle, a.Number}
	if _, err := p.try(send(1)); err != nil {
		r.Fatalf("PostSend to %q: %v", address, err)
	}
	p.expectError()
	p.expectSent(failed(1, verbs.StatusFlushed))
	p.expectFlushed()
}

// expectFlushed fails the case unless everything that is posted is flushed.
func (p *pair) expectFlushed() {
	p.Helper()
	p.post(send(91).silent(), send(92))
	p.receive(93)
	p.expectSent(failed(91, verbs.StatusFlushed), failed(92, verbs.StatusFlushed))
	p.expectReceived(failed(93, verbs.StatusFlushed))
}

// staleStep accepts a request that its maker has given up. It responds with a failure unless that fails at once or
// later. A later request has arrived before.
type staleStep struct{ Hello []byte }

func (p staleStep) do(s *station) answer {
	held, config, err := s.queues(sizes{})
	if err != nil {
		return answer{Failure: failure(err)}
	}
	request := s.find(p.Hello)
	if request == nil {
		return answer{} // a device may drop a request together with its maker
	}
	if held.queuePair, err = request.Accept(config); err != nil {
		return answer{}
	}
	return answer{Failure: failure(s.awaitState(held, verbs.StateError))}
}

func init() { gob.Register(staleStep{}) }
