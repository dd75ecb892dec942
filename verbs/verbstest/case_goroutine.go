package verbstest

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/verbs"
)

// Methods may be called from any goroutine, and the short path does not allocate.
var goroutineCases = []testCase{
	{"batches of several goroutines stay together", func(b *bench) {
		const posters, batches, length = 4, 40, 4
		const total = posters * batches * length
		near, far := b.pair(sizes{MaxSends: total, MaxReceives: total})
		for i := range total {
			far.receive(uint64(i))
		}
		b.together(posters, func(me int) error {
			for k := range batches {
				var works []work
				for i := range length {
					works = append(works, sendImmediate(0, uint32(me<<16|k*length+i)))
				}
				if _, err := near.station.post(near.held(), works); err != nil {
					return err
				}
			}
			return nil
		})
		near.sent(total)
		var next [posters]uint32
		var last uint32
		for i, c := range far.received(total) {
			poster, number := c.Immediate>>16, c.Immediate&0xffff
			if c.ID != uint64(i) || poster >= posters || number != next[poster] {
				b.Fatalf("message %d is number %d of goroutine %d, want number %d: %+v", i, number, poster, next[poster%posters], c)
			}
			if number%length != 0 && c.Immediate != last+1 {
				b.Fatalf("message %d of goroutine %d came between those of a batch", i, poster)
			}
			next[poster]++
			last = c.Immediate
		}
	}},
	{"several goroutines with a queue pair each", func(b *bench) {
		near, far := b.two()
		const workers, rounds = 4, 100
		type end struct {
			near, far    *pair
			mine, theirs *area
		}
		ends := make([]end, workers)
		for i := range ends {
			ends[i].near, ends[i].far = connected(near, far, sizes{})
			ends[i].mine, ends[i].theirs = near.allocate(2000, all), far.allocate(1000, all)
		}
		b.together(workers, func(i int) error {
			e := ends[i]
			for round := range uint64(rounds) {
				data := noise(round<<8|uint64(i), 1000)
				copy(e.mine.memory(), data)
				w, r := e.theirs.write(round, 0, e.mine.at(0, 1000)).silent(), e.theirs.read(round, 0, e.mine.at(1000, 2000))
				if _, err := near.station.post(e.near.held(), []work{w, r}); err != nil {
					return err
				}
				completions, err := near.station.collect(e.near.held().sends, 1)
				if err != nil {
					return err
				}
				if c := completions[0]; c.ID != round || c.Status != verbs.StatusSuccess {
					return fmt.Errorf("round %d of goroutine %d completed as %+v", round, i, c)
				}
				if difference := differ(e.mine.memory()[1000:], data); difference != "" {
					return fmt.Errorf("round %d of goroutine %d: %s", round, i, difference)
				}
			}
			return nil
		})
	}},
	{"several goroutines poll the queue of one that sends", func(b *bench) {
		sendStreamBeside(b, 150, 150_000, sizes{}, func(near *pair) (stop func()) {
			first, second := near.station.drive(), near.station.drive()
			return func() {
				first()
				second()
			}
		})
	}},
	{"memory is allocated and registered by several goroutines", func(b *bench) {
		near := b.near()
		b.together(4, func(i int) error {
			for round := range 60 {
				size := 1 + (round*i*977+round)%20_000
				memory, err := near.device.AllocateMemory(size)
				if err != nil {
					return err
				}
				if difference := differ(memory, make([]byte, size)); difference != "" {
					return fmt.Errorf("goroutine %d, round %d: not zeroed: %s", i, round, difference)
				}
				copy(memory, noise(uint64(i), size))
				region, err := near.device.RegisterMemory(memory, all)
				if err != nil {
					return err
				}
				if difference := differ(memory, noise(uint64(i), size)); difference != "" {
					return fmt.Errorf("goroutine %d, round %d: %s", i, round, difference)
				}
				if err := errors.Join(region.Deregister(), near.device.FreeMemory(memory)); err != nil {
					return err
				}
			}
			return nil
		})
	}},
	{"several goroutines connect", func(b *bench) {
		near, far := b.two()
		const count = 12
		handles := make([]int, count)
		b.together(count, func(i int) (err error) {
			handles[i], err = near.station.connect(far.address, []byte(fmt.Sprint("connection of ", i)), sizes{Capacity: 16})
			return err
		})
		numbers := map[uint32]bool{}
		for i, handle := range handles {
			q := far.accept(fmt.Sprint("connection of ", i), sizes{Capacity: 16})
			p := &pair{near, handle, near.station.pair(handle).queuePair.Number()}
			numbers[p.number] = true
			p.await(verbs.StateReady)
			w := sendImmediate(1, uint32(i))
			q.receive(2)
			p.post(w)
			q.expectReceived(gotImmediate(2, 0, uint32(i)))
			p.expectSent(done(w))
		}
		if len(numbers) != count {
			b.Fatalf("%d live queue pairs have %d numbers", count, len(numbers))
		}
	}},
	{"a queue pair is closed while it is used", func(b *bench) {
		near, far := b.two()
		theirs, mine := far.allocate(64, all), near.allocate(64, all)
		for range 20 {
			p, _ := connected(near, far, sizes{})
			useUntilClosed(b, p, theirs, mine, p.queuePair().Close)
		}
	}},
	{"a device is closed while it is used", func(b *bench) {
		for range 10 {
			near, far := b.two()
			theirs, mine := far.allocate(64, all), near.heap(64, verbs.LocalWrite)
			p, _ := connected(near, far, sizes{})
			useUntilClosed(b, p, theirs, mine, near.station.close)
		}
	}},
	{"posting and polling a write", func(b *bench) {
		allocationFree(b, func(near *pair, theirs, mine *area) work { return theirs.write(1, 0, mine.at(0, 64)) })
	}},
	{"posting and polling an inline write", func(b *bench) {
		allocationFree(b, func(near *pair, theirs, mine *area) work {
			b.skipUnless(near.device.Attributes().MaxInline >= 8, "the device carries no 8 bytes inline")
			w := theirs.write(1, 0, mine.at(0, 8))
			w.Flags |= verbs.Inline
			return w
		})
	}},
	{"posting and polling a read", func(b *bench) {
		allocationFree(b, func(near *pair, theirs, mine *area) work { return theirs.read(1, 0, mine.at(0, 64)) })
	}},
	{"posting and polling an atomic", func(b *bench) {
		allocationFree(b, func(near *pair, theirs, mine *area) work { return theirs.fetchAdd(1, 0, 1, mine.at(0, 8)) })
	}},
	{"posting and polling a receive and a send", func(b *bench) {
		skipAllocations(b)
		near := b.near()
		p, q := connected(near, near, sizes{})
		mine := near.allocate(256, all)
		receives := []verbs.ReceiveRequest{{ID: 1, Segments: near.station.segments([]segment{mine.at(0, 64)})}}
		sends := []verbs.SendRequest{send(2).SendRequest}
		sends[0].Segments = near.station.segments([]segment{mine.at(64, 128)})
		sendQueue, receiveQueue := p.held().sends, q.held().receives
		expectNoAllocations(b, func(into []verbs.Completion) bool {
			n, _ := q.queuePair().PostReceive(receives)
			m, _ := p.queuePair().PostSend(sends)
			return n == 1 && m == 1 && near.completion(receiveQueue, into) && near.completion(sendQueue, into)
		})
	}},
}

// useUntilClosed posts and polls from three goroutines until everything is flushed or refused, while a fourth closes
// something.
func useUntilClosed(b *bench, p *pair, theirs, mine *area, end func() error) {
	b.Helper()
	var posted atomic.Int32
	held := p.held()
	request := theirs.write(1, 0).SendRequest
	request.Segments = p.station.segments([]segment{mine.every()})
	b.together(4, func(i int) error {
		if i == 0 {
			for posted.Load() < 3 {
				runtime.Gosched()
			}
			return end()
		}
		var into [8]verbs.Completion
		for {
			_, err := held.queuePair.PostSend([]verbs.SendRequest{request})
			posted.Add(1)
			if i == 1 {
				held.sends.Poll(into[:])
			}
			switch {
			case err == nil || errors.Is(err, verbs.ErrQueueFull):
				if held.queuePair.State() == verbs.StateError {
					return nil
				}
			case errors.Is(err, verbs.ErrClosed):
				return nil
			default:
				return fmt.Errorf("PostSend while it is closed: %w", err)
			}
		}
	})
}

func skipAllocations(b *bench) {
	b.Helper()
	b.skipUnless(!testsize.Race, "the race detector allocates itself; the run without it looks")
	b.skipUnless(b.config.Allocates == "", b.config.Allocates)
}

// allocationFree checks that posting a request and polling its completion allocates nothing on this side.
func allocationFree(b *bench, request func(near *pair, theirs, mine *area) work) {
	b.Helper()
	skipAllocations(b)
	near, far := b.pair(sizes{})
	theirs, mine := far.allocate(64, all), near.allocate(64, all)
	w := request(near, theirs, mine)
	requests := []verbs.SendRequest{w.SendRequest}
	requests[0].Segments = near.station.segments(w.Named)
	queuePair, queue := near.queuePair(), near.held().sends
	expectNoAllocations(b, func(into []verbs.Completion) bool {
		n, _ := queuePair.PostSend(requests)
		return n == 1 && near.completion(queue, into)
	})
}

// completion waits for one completion, and reports whether it is a success. It allocates nothing.
func (r *rank) completion(queue verbs.CompletionQueue, into []verbs.Completion) bool {
	return r.station.awaitOne(queue, into) && into[0].Status == verbs.StatusSuccess
}

// expectNoAllocations runs body repeatedly, with room for a completion.
func expectNoAllocations(b *bench, body func(into []verbs.Completion) bool) {
	b.Helper()
	well := true
	into := make([]verbs.Completion, 1)
	for range 300 {
		well = well && body(into) // what a device grows once is not counted
	}
	n := testing.AllocsPerRun(200, func() { well = well && body(into) })
	if !well {
		b.Fatal("a request was not taken, or did not complete with success")
	}
	if n != 0 {
		b.Fatalf("posting and polling allocate %v times", n)
	}
}
