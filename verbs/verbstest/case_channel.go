package verbstest

import (
	"encoding/gob"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/verbs"
)

// Sleepers wake when they are rung, and sleep otherwise.
var channelCases = []testCase{
	{"a ring between Prepare and Sleep", func(b *bench) {
		near := b.near()
		channel := near.device.Channel()
		for range 100 {
			ticket := channel.Prepare()
			channel.Wake()
			if !near.station.slept(ticket) {
				b.Fatal("Sleep missed a ring after its Prepare")
			}
			channel.Finish()
		}
	}},
	{"a ring before another sleeper's Prepare", func(b *bench) {
		near := b.near()
		channel := near.device.Channel()
		first := channel.Prepare()
		channel.Wake()
		second := channel.Prepare()
		if !near.station.slept(first) {
			b.Fatal("Sleep missed a ring after its Prepare, because of a later Prepare")
		}
		channel.Finish()
		channel.Wake()
		if !near.station.slept(second) {
			b.Fatal("Sleep missed a ring after its Prepare")
		}
		channel.Finish()
	}},
	{"one ring wakes all sleepers", func(b *bench) {
		near := b.near()
		channel := near.device.Channel()
		const sleepers = 5
		for range 20 {
			var prepared sync.WaitGroup
			prepared.Add(sleepers)
			b.together(sleepers+1, func(i int) error {
				if i == sleepers {
					prepared.Wait()
					channel.Wake()
					return nil
				}
				ticket := channel.Prepare()
				defer channel.Finish()
				prepared.Done()
				if !near.station.slept(ticket) {
					return fmt.Errorf("sleeper %d was not woken", i)
				}
				return nil
			})
		}
	}},
	{"a sleeper who looks again misses nothing", func(b *bench) {
		near := b.near()
		channel := near.device.Channel()
		rounds := testsize.N(500)
		var turn atomic.Uint64
		b.together(2, func(me int) error {
			for round := range uint64(rounds) {
				mine := 2*round + uint64(me)
				if err := near.station.await("my turn", func() bool { return turn.Load() == mine }); err != nil {
					return err
				}
				turn.Store(mine + 1)
				channel.Wake()
			}
			return nil
		})
	}},
	{"many ring and many sleep", func(b *bench) {
		near := b.near()
		channel := near.device.Channel()
		const ringers, rounds = 3, 300
		var rung atomic.Uint64
		b.together(2*ringers, func(i int) error {
			if i < ringers {
				for range rounds {
					rung.Add(1)
					channel.Wake()
				}
				return nil
			}
			return near.station.await("all rings", func() bool { return rung.Load() == ringers*rounds })
		})
	}},
	{"a sleep ends at its limit", func(b *bench) {
		near := b.near()
		for _, limit := range []time.Duration{0, 1, time.Microsecond, time.Millisecond} {
			channel := near.device.Channel()
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				ticket := channel.Prepare()
				near.station.config.sleep(near.device, ticket, limit)
				channel.Finish()
			}()
			await.Closed(b, fmt.Sprintf("the end of a Sleep with a limit of %v", limit), ended)
		}
	}},
	{"a sleeper sleeps", func(b *bench) {
		// Sleep may return spuriously, but a Sleep that mostly does is spinning.
		near := b.near()
		channel := near.device.Channel()
		const naps = 40
		slept := 0
		for range naps {
			begun := near.station.clock()
			ticket := channel.Prepare()
			near.station.config.sleep(near.device, ticket, time.Millisecond)
			channel.Finish()
			if near.station.clock()-begun >= time.Millisecond/2 {
				slept++
			}
		}
		if slept < naps/2 {
			b.Fatalf("of %d sleeps of 1 ms %d lasted half of that", naps, slept)
		}
	}},
	{"messages wake sleepers on both sides", func(b *bench) {
		near, far := b.pair(sizes{})
		rounds := testsize.N(200)
		wait := far.begin(pongStep{far.handle, rounds})
		for round := range uint64(rounds) {
			near.receive(round)
			near.post(sendImmediate(round, uint32(round)))
			near.expectReceived(gotImmediate(round, 0, uint32(round)))
			near.expectSent(verbs.Completion{ID: round, Opcode: verbs.OpSendImmediate})
		}
		wait()
	}},
	{"connections wake sleepers on both sides", func(b *bench) {
		near, far := b.two()
		for range testsize.N(25) {
			connected(near, far, sizes{Capacity: 1})
			connected(far, near, sizes{Capacity: 1})
		}
	}},
}

// slept sleeps with a ticket and reports whether that ended before the limit.
func (s *station) slept(ticket uint32) bool {
	end := s.clock() + s.config.Limit
	s.config.sleep(s.device, ticket, s.config.Limit)
	return s.clock() < end
}

// pongStep responds to messages.
type pongStep struct{ Pair, Rounds int }

func (p pongStep) do(s *station) answer {
	held := s.pair(p.Pair)
	for round := range uint64(p.Rounds) {
		if _, err := s.postReceive(held, []slot{{ID: round}}); err != nil {
			return answer{Failure: failure(err)}
		}
		completions, err := s.collect(held.receives, 1)
		if err != nil {
			return answer{Failure: failure(err)}
		}
		if c := completions[0]; c.Status != verbs.StatusSuccess || c.Immediate != uint32(round) {
			return answer{Failure: fmt.Sprintf("round %d: received %+v", round, c)}
		}
		if _, err := s.post(held, []work{sendImmediate(round, uint32(round))}); err != nil {
			return answer{Failure: failure(err)}
		}
		if _, err := s.collect(held.sends, 1); err != nil {
			return answer{Failure: failure(err)}
		}
	}
	return answer{}
}

func init() { gob.Register(pongStep{}) }
