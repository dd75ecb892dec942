package oracle_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/scheduler/transfer"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/sim"
	"github.com/onesided/rma/window/oracle"
	"github.com/onesided/rma/world"
)

// simulated starts ranks in the virtual time of a simulator, whose machine, whose order of what
// is at the same time, whose ways of memory that cards do not know, and whether there are rings the seed
// draws. watch is told of each event, if it is not nil.
func simulated(seed uint64, watch func(sim.Event)) start {
	return simulatedOn(seed, watch, func(*sim.Profile) {})
}

// simulatedOn is simulated on another machine, with options.
func simulatedOn(seed uint64, watch func(sim.Event), change func(p *sim.Profile), options ...world.Option) start {
	return func(ctx context.Context, n int, body func(ctx context.Context, w *world.World) error) error {
		names := sim.Profiles()
		profile, err := sim.ByName(names[seed%uint64(len(names))])
		if err != nil {
			return err
		}
		profile.UnorderedWrites = seed%3 == 0
		change(&profile)
		s, err := sim.New(profile, seed)
		if err != nil {
			return err
		}
		if watch != nil {
			s.Trace(watch)
		}
		return world.Simulate(ctx, s, n, body, append(options, world.WithTransfers(transfersOf(seed)), world.WithRings(seed/2%2 == 1))...)
	}
}

// transfersOf are the ways of memory that cards do not know: all, of which the library chooses, or
// one.
func transfersOf(seed uint64) transfer.Set {
	if p := transfer.Protocol(seed / 3 % (2 * uint64(transfer.Protocols))); p < transfer.Protocols {
		return transfer.Of(p)
	}
	return transfer.All
}

// serial are the options of a program in virtual time, where a rank is one task.
func serial(seed uint64) oracle.Options {
	o := optionsOf(seed)
	o.Concurrent = false
	return o
}

// TestSimulated runs random programs in virtual time.
func TestSimulated(t *testing.T) {
	for s := *seed; s < *seed+uint64(count(256)); s++ {
		p, o := oracle.Draw(s, oracle.Limits{}), serial(s)
		err := runOn(t.Context(), simulated(s, nil), p, o)
		if err == nil {
			continue
		}
		small := oracle.Shrink(p, func(p *oracle.Program) bool { return runOn(t.Context(), simulated(s, nil), p, o) != nil })
		t.Fatalf("-seed %d, without %#x: %v\nthe same, in\n%s", s, o.Without, err, small)
	}
}

// TestSimulatedCards runs random programs in virtual time whose windows leave the accumulate family
// to the cards: a third of the cards is coherent with the processor.
func TestSimulatedCards(t *testing.T) {
	for s := *seed; s < *seed+uint64(count(256)); s++ {
		p, o := oracle.Draw(s, oracle.Limits{CardAtomics: true}), serial(s)
		on := simulatedOn(s, nil, func(p *sim.Profile) { p.CoherentAtomics = s%3 == 0 })
		err := runOn(t.Context(), on, p, o)
		if err == nil {
			continue
		}
		small := oracle.Shrink(p, func(p *oracle.Program) bool { return runOn(t.Context(), on, p, o) != nil })
		t.Fatalf("-seed %d, without %#x: %v\nthe same, in\n%s", s, o.Without, err, small)
	}
}

// TestSimulatedRails runs random programs in virtual time on ranks with several cards, on which
// everything takes so little time but for the bytes that few of them are worth all cards.
func TestSimulatedRails(t *testing.T) {
	striped := 0
	for s := *seed; s < *seed+uint64(count(256)); s++ {
		p, o := oracle.Draw(s, oracle.Limits{}), serial(s)
		// Cards after the first have the numbers behind those of the ranks.
		watch := func(e sim.Event) {
			if e.Kind == sim.Sent && e.Rank >= p.Ranks && e.Opcode == verbs.OpRDMAWrite {
				striped++
			}
		}
		on := simulatedOn(s, watch, func(p *sim.Profile) {
			p.Post, p.Fetch, p.FetchInline, p.Wire, p.Place, p.TurnRead, p.Return, p.Link = 0, 0, 0, 0, 0, 0, 0, 1e9
		}, world.WithRails(2+int(s%2)))
		err := runOn(t.Context(), on, p, o)
		if err == nil {
			continue
		}
		small := oracle.Shrink(p, func(p *oracle.Program) bool { return runOn(t.Context(), on, p, o) != nil })
		t.Fatalf("-seed %d, without %#x: %v\nthe same, in\n%s", s, o.Without, err, small)
	}
	// Few programs may have none that is worth it.
	if count(256) >= 32 {
		require.Positive(t, striped)
	}
	t.Logf("%d parts of writes went over other cards than the first", striped)
}

// TestSameTrace runs programs twice in virtual time: all events must be the same.
func TestSameTrace(t *testing.T) {
	for s := range uint64(12) {
		p := oracle.Draw(s, oracle.Limits{})
		trace := func() (sum uint64, events int) {
			h := fnv.New64a()
			require.NoError(t, runOn(t.Context(), simulated(s, func(e sim.Event) {
				events++
				_, _ = fmt.Fprintln(h, e)
			}), p, serial(s)))
			return h.Sum64(), events
		}
		first, events := trace()
		again, same := trace()
		require.Equal(t, events, same, "seed %d", s)
		require.Equal(t, first, again, "seed %d", s)
		require.Greater(t, events, 10, "seed %d", s)
	}
}
