package scheduler_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/scheduler"
)

// TestPattern compares the patterns of two epochs.
func TestPattern(t *testing.T) {
	p := planner(scheduler.All, true)
	for _, c := range []struct {
		name, one, other string
		alike            bool
	}{
		{"the same", "p8 g8 a8", "p8 g8 a8", true},
		{"another order", "p8 g8 8*a8", "4*a8 g8 4*a8 p8", true},
		{"about as many", "65*p8", "90*p8", true},
		{"about as many bytes", "p9000 p9000", "p9000 p10000", true},
		{"other kinds", "p8 p8", "p8 g8", false},
		{"many more", "8*p8", "40*p8", false},
		{"many more bytes", "8*p8", "8*p100", false},
		{"a notification more", "7*p8", "7*p8 n", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			one, other := pattern(t, p, c.one), pattern(t, p, c.other)
			require.Equal(t, c.alike, one == other, "%+v and %+v", one, other)
		})
	}
}

// TestRelevantSchemes names the schemes that may matter to an epoch.
func TestRelevantSchemes(t *testing.T) {
	const E, I, K, G, M, D = scheduler.Early, scheduler.Interleave, scheduler.Pack, scheduler.GetsFirst, scheduler.Merge, scheduler.Defer
	for _, c := range []struct {
		script           string
		direct, messages scheduler.Scheme
	}{
		{"", 0, 0},
		{"n", D, D},
		{"p8", D | K, D},
		{"2*p8", D | K | M, D | M},
		{"p9000 p9000", D | E, D | E | M},
		{"p8 p9000", D | E | K | M | G, D | E | M},
		{"g8", D | K, D},
		{"g8 p8", D | K | M | G | I, D | M | G},
		{"g8 a8", D | K | G, D | G},
		{"5*a8 n", D, D},
		{"2*p8 n", D | K | M, D | M},
		{"1999*g4", D | K, D},
		{"2048*g1", D | E | K, D | E},
	} {
		for _, direct := range []bool{false, true} {
			want := c.messages
			if direct {
				want = c.direct
			}
			got := pattern(t, planner(scheduler.All, direct), c.script).Relevant()
			require.Equal(t, want, got, "%q, direct %v: %b, not %b", c.script, direct, want, got)
		}
	}
}

// TestEndedCountsOneEpoch: how an epoch is sent does not change its pattern, nor do the
// epochs before it.
func TestEndedCountsOneEpoch(t *testing.T) {
	p := planner(scheduler.All, true)
	q := queued(t, "p8 g9000 n a8 p16 20*p1 s8")
	q.Drop(len(q.Operations))
	at := p.Ended(q)
	require.Equal(t, scheduler.Pattern{}, p.Ended(q))
	for range 2 {
		for _, o := range queued(t, "p8 g9000 n a8 p16 20*p1 s8").Operations {
			*q.Add(o.Kind, o.Bytes) = o
			if o.Bytes == 8 {
				q.Drop(len(q.Operations))
			}
		}
		require.Empty(t, q.Operations)
		require.Equal(t, at, p.Ended(q))
	}
}

// changes reports whether a single scheme changes when operations are due, or their plan. It returns their pattern too.
func changes(like *planned, single scheduler.Scheme) (changed bool, pattern scheduler.Pattern) {
	p := scheduler.NewPlanner(like.conditions)
	less := p.With(scheduler.All&^single, scheduler.Pattern{})
	var q scheduler.Queue
	for _, o := range like.operations {
		if o.Run == 0 {
			*q.Add(o.Kind, o.Bytes) = o
			changed = changed || p.Due(&q) != less.Due(&q)
			continue
		}
		for words := like.queue.Run(&o); len(words) > 0; words = words[2:] {
			q.Accumulate(o.Op, o.Element, o.Bytes/int(o.Run), words[0], words[1])
			changed = changed || p.Due(&q) != less.Due(&q)
		}
		q.EndRun()
	}
	var with, without scheduler.Plan
	p.Plan(q.Operations, like.following, &with)
	less.Plan(q.Operations, like.following, &without)
	q.Drop(len(q.Operations))
	return changed || !slices.Equal(with.Steps, without.Steps), p.Ended(&q)
}

// randomQueue is a queue, under random conditions but with all schemes.
func randomQueue(seed uint64) *planned {
	like := random(rand.New(rand.NewPCG(seed, 6)))
	like.conditions.Scheme = scheduler.All
	return like
}

// TestOtherSchemesChangeNothing plans and starts random queues with and without each single scheme. Where that makes a
// difference, the scheme is relevant to the pattern.
func TestOtherSchemesChangeNothing(t *testing.T) {
	for seed := range testsize.Samples(t, 3000) {
		like := randomQueue(seed)
		for single := scheduler.Defer; single < scheduler.Adapt; single <<= 1 {
			changed, pattern := changes(like, single)
			require.True(t, !changed || pattern.Relevant()&single != 0, "seed %d: scheme %b", seed, single)
		}
	}
}

// TestRandomQueuesChange checks that each single scheme changes some of the random queues. The queues are the same in
// each run, so that this does not depend on luck.
func TestRandomQueuesChange(t *testing.T) {
	for single := scheduler.Defer; single < scheduler.Adapt; single <<= 1 {
		differences := 0
		for seed := range uint64(200) {
			if changed, _ := changes(randomQueue(seed), single); changed {
				differences++
			}
		}
		require.Greater(t, differences, 20, "scheme %b", single)
	}
}
