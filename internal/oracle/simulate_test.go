package oracle_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/oracle"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/internal/tuning"
	"github.com/onesided/rma/scheduler/transfer"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/sim"
	"github.com/onesided/rma/world"
)

// simulated starts ranks in virtual time. The seed selects the machine, the order of simultaneous events, the protocols
// for memory that cards do not know, and whether rings are used. watch, if not nil, receives each event.
func simulated(seed uint64, watch func(sim.Event)) start {
	return simulatedOn(seed, watch, func(*sim.Profile) {})
}

// simulatedOn is like simulated, on a changed machine and with options.
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
		return world.Simulate(ctx, s, n, body, append(options, job.Tune(func(t *tuning.Tuning) {
			t.NoProtocols = transfer.All &^ transfersOf(seed)
			if t.Rings = tuning.RingsNever; seed/2%2 == 1 {
				t.Rings = tuning.RingsAlways
			}
		}))...)
	}
}

// transfersOf returns the protocols for memory that cards do not know: all of them, or one.
func transfersOf(seed uint64) transfer.Set {
	if p := transfer.Protocol(seed / 3 % (2 * uint64(transfer.Protocols))); p < transfer.Protocols {
		return transfer.Of(p)
	}
	return transfer.All
}

// TestSimulated runs random programs in virtual time.
func TestSimulated(t *testing.T) {
	runPrograms(t, onSim, oracle.Limits{}, 1, func(_ *oracle.Program, seed uint64) start { return simulated(seed, nil) })
}

// TestSimulatedCards runs random programs in virtual time. The cards apply the accumulate family, and a third of the
// cards are coherent with the processor.
func TestSimulatedCards(t *testing.T) {
	runPrograms(t, onSimCards, oracle.Limits{CardAtomics: true}, 1, func(_ *oracle.Program, seed uint64) start {
		return simulatedOn(seed, nil, func(p *sim.Profile) { p.CoherentAtomics = seed%3 == 0 })
	})
}

// TestSimulatedRails runs random programs in virtual time on ranks with several cards. Apart from the bytes nothing
// takes time, so even short operations are worth all cards. The scripts of testdata have longer operations, some of
// which must be divided among the cards.
func TestSimulatedRails(t *testing.T) {
	striped := 0
	on := func(p *oracle.Program, seed uint64) start {
		// Cards after the first have numbers after those of the ranks.
		watch := func(e sim.Event) {
			if e.Kind == sim.Sent && e.Rank >= p.Ranks && e.Opcode == verbs.OpRDMAWrite {
				striped++
			}
		}
		return simulatedOn(seed, watch, func(p *sim.Profile) {
			p.Post, p.Fetch, p.FetchInline, p.Wire, p.Place, p.TurnRead, p.Return, p.Link = 0, 0, 0, 0, 0, 0, 0, 1e9
		}, job.Tune(func(t *tuning.Tuning) { t.Rails = 2 + int(seed%2) }))
	}
	runPrograms(t, onSimRails, oracle.Limits{}, 1, on)
	t.Logf("%d parts of random programs' writes went over other cards than the first", striped)
	all, err := scripts(combined)
	require.NoError(t, err)
	striped = 0
	for i, s := range all {
		require.NoError(t, runOn(t.Context(), on(s.program, uint64(i)), s.program, oracle.Options{}), s.name)
	}
	require.Positive(t, striped)
}

// TestSameTrace runs programs twice in virtual time. All events must be the same.
func TestSameTrace(t *testing.T) {
	for seed := range testsize.Samples(t, 8) {
		p := onSim.draw(seed, oracle.Limits{})
		trace := func() (sum uint64, events int) {
			h := fnv.New64a()
			require.NoError(t, runOn(t.Context(), simulated(seed, func(e sim.Event) {
				events++
				_, _ = fmt.Fprintln(h, e)
			}), p, onSim.options(seed)))
			return h.Sum64(), events
		}
		first, events := trace()
		again, same := trace()
		require.Equal(t, events, same, "seed %d", seed)
		require.Equal(t, first, again, "seed %d", seed)
		require.Positive(t, events, "seed %d", seed)
	}
}
