package scheduler_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/scheduler"
)

// TestPlan plans epochs whose closing synchronization sends a message to the target.
func TestPlan(t *testing.T) {
	for _, c := range []struct {
		name   string
		scheme scheduler.Scheme
		script string
		plan   string
	}{
		{"nothing", scheduler.All, "", ""},

		{"small gets first", scheduler.All, "p8 p8 g8 p8 g8", "[2 4 0 1 3]"},
		{"large gets lead, alternating with puts", scheduler.All, "p9000 p9000 p9000 g9000 g9000", "3 0 4 1 2"},
		{"gets that are left", scheduler.All, "p9000 g9000 g9000 g9000", "1 0 2 3"},
		{"gets first, not alternating", without(scheduler.Interleave), "p9000 p9000 g9000 g9000", "2 3 0 1"},
		{"in order", without(scheduler.GetsFirst), "p8 g8 p9000 g9000 a8", "[0 1] 2 3 [4]"},
		{"small gets, large operations, accumulates, small puts", scheduler.All, "p8 a8 p9000 g9000 f8 g8 s8", "[5] 3 2 [1 4 6 0]"},

		{"accumulates keep their order", scheduler.All, "a8 s8 f8 a16 f8 a8", "[0 1 2 3 4 5]"},
		{"a notification is after what was before it", scheduler.All, "p8 n p9000 g8 n n g8 p8", "[0 1 3] 2 [4 5 6 7]"},
		{"a notification in order", without(scheduler.GetsFirst), "p8 n p9000 n", "[0 1] 2 [3]"},

		{"neighboring puts go as one", scheduler.All, "p8 +p8 +p16 g8 p8 +p8", "[3 0-2 4-5]"},
		{"so do those to one place", scheduler.All, "p8 =p8 p16 =p8 p8 =p16", "[0-1 2-3 4-5]"},
		{"and those that overlap", scheduler.All, "p16 ~p16 ~p4 +p40 +p8", "[0-4]"},
		{"but not through a gap, or backwards", scheduler.All, "p8 p8 +p8 p8", "[0 1-2 3]"},
		{"nor gets, nor accumulates", scheduler.All, "g8 +g8 a8 +a8", "[0 1 2 3]"},
		{"nor with large ones", scheduler.All, "p8 +p9000 +p8", "1 [0 2]"},
		{"nor one with a get", scheduler.All, "p8 +g8 +p8", "[1 0 2]"},
		{"nor a get with one, in order", without(scheduler.GetsFirst), "g8 +p8 +g8", "[0 1 2]"},
		{"nor over other operations", scheduler.All, "p8 a8 p8", "[1 0 2]"},
		{"nor more than a message has room for", scheduler.All, "p3300 +p3300 +p3300 +p3300 +p3168 +p1 +p3300", "[0-4 5-6]"},
		{"where what overlaps counts once", scheduler.All, "p3300 +p3300 =p3300 +p3300 +p3300 +p3168 =p3168 =p3169", "[0-6 7]"},
		{"as one, in order", without(scheduler.GetsFirst), "p8 +p8 g8 p8 +p8", "[0-1 2 3-4]"},
		{"each by itself", without(scheduler.Merge), "p8 +p8 +p16", "[0 1 2]"},

		{"puts up to what costs less packed", scheduler.All, "p3399 p3400", "1 [0]"},
		{"gets up to what costs less packed", scheduler.All, "g3399 g3400", "[0] 1"},
		{"but not if the link has both directions for them", scheduler.All, "p3399 p3400 g3399 g3400", "2 0 3 1"},
		{"or only those which that leaves worth it", scheduler.All, "2*p8 p3399 2*g8 g3399", "[3 4] 5 2 [0 1]"},
		{"nothing is packed that can go by itself", without(scheduler.Pack), "p8 g8 a8 p8", "1 0 3 [2]"},
		{"nothing waits", without(scheduler.Defer), "p8 +p8 g8 a8 n", "0 1 2 [3 4]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var plan scheduler.Plan
			planner(c.scheme, true).Plan(queued(t, c.script).Operations, scheduler.End, &plan)
			require.Equal(t, c.plan, written(&plan))
		})
	}
}

// TestAtomics has the card carry out what accumulates: each goes direct, in order, and is no
// reason for a message.
func TestAtomics(t *testing.T) {
	for _, c := range []struct {
		scheme    scheduler.Scheme
		following scheduler.Following
		script    string
		plan      string
	}{
		{scheduler.All, scheduler.End, "a8 s8 f8 a8", "0 1 2 3"},
		{scheduler.All, scheduler.End, "p8 a8 p9000 g9000 f8 g8 s8", "[5] 3 2 1 4 6 [0]"},
		{scheduler.All, scheduler.Nothing, "g8 p8 a8", "0 1 2"},
		{scheduler.All, scheduler.Nothing, "2*p8 3*a8 4*p8", "2 3 4 [0 1 5 6 7 8]"},
		{scheduler.All, scheduler.Nothing, "f8 n f8 n", "0 [1] 2 [3]"},
		{without(scheduler.GetsFirst), scheduler.End, "a8 p8 f8", "0 [1] 2"},
		{without(scheduler.Defer), scheduler.Nothing, "f8", "0"},
	} {
		t.Run(c.script, func(t *testing.T) {
			var plan scheduler.Plan
			p := scheduler.NewPlanner(scheduler.Conditions{Costs: costs, Scheme: c.scheme, Direct: true, Atomics: true, Packet: packet})
			p.Plan(queued(t, c.script).Operations, c.following, &plan)
			require.Equal(t, c.plan, written(&plan))
		})
	}
}

// TestRoute has the same operations go over links with and without RDMA, with and without a
// message that closes the epoch: one is packed only if that saves more than a message
// costs which would not go otherwise.
func TestRoute(t *testing.T) {
	for _, c := range []struct {
		script                  string
		closing, open, messages string
	}{
		{"p8", "[0]", "0", "[0]"},
		{"g8", "[0]", "0", "[0]"},
		{"g8 p8 p8", "[0 1 2]", "0 1 2", "[0 1 2]"},
		{"4*g8 p8", "[0 1 2 3 4]", "0 4 1 2 3", "[0 1 2 3 4]"},
		{"6*p8", "[0 1 2 3 4 5]", "[0 1 2 3 4 5]", "[0 1 2 3 4 5]"},
		{"6*p3000", "[0 1 2 3 4 5]", "0 1 2 3 4 5", "[0 1 2 3 4 5]"},
		{"g8 p8 a8", "[0 2 1]", "[0 2 1]", "[0 2 1]"},
		{"p8 n", "[0 1]", "[0 1]", "[0 1]"},
		{"p9000 g9000", "1 0", "1 0", "[1 0]"},
		{"p100000", "0", "0", "[0]"},
	} {
		for _, way := range []struct {
			name            string
			direct, closing bool
			plan            string
		}{{"closing", true, true, c.closing}, {"open", true, false, c.open}, {"messages, closing", false, true, c.messages}, {"messages", false, false, c.messages}} {
			t.Run(c.script+", "+way.name, func(t *testing.T) {
				var plan scheduler.Plan
				planner(scheduler.All, way.direct).Plan(queued(t, c.script).Operations, following(way.closing), &plan)
				require.Equal(t, way.plan, written(&plan))
			})
		}
	}
}

// TestManyGoPacked: 64 small ones are worth a message of their own.
func TestManyGoPacked(t *testing.T) {
	for _, script := range []string{"64*g8", "64*p8"} {
		var plan scheduler.Plan
		planner(scheduler.All, true).Plan(queued(t, script).Operations, scheduler.Nothing, &plan)
		require.Len(t, plan.Steps, 64)
		for _, step := range plan.Steps {
			require.True(t, step.Packed)
		}
	}
}

// TestUnmeasuredCopies: of a link without costs of copies, nothing is worth packing
// that can go by itself.
func TestUnmeasuredCopies(t *testing.T) {
	var plan scheduler.Plan
	scheduler.NewPlanner(scheduler.Conditions{Scheme: scheduler.All, Direct: true, Packet: packet}).
		Plan(queued(t, "64*p8 g8 a8").Operations, scheduler.End, &plan)
	for _, step := range plan.Steps {
		require.Equal(t, step.First == 65, step.Packed)
	}
}

// TestOutgrown has epochs outgrow the pattern that a scheme is for. They are due then, and are arranged by all schemes.
func TestOutgrown(t *testing.T) {
	all := planner(scheduler.All, true)
	small := pattern(t, all, "100*p8")
	learned := all.With(without(scheduler.Early|scheduler.GetsFirst|scheduler.Interleave), small)
	for script, outgrown := range map[string]bool{
		"":                false,
		"100*p8":          false,
		"127*p8":          false,
		"128*p8":          true,
		"p1023":           false,
		"p1024":           true,
		"p1048576":        true,
		"100*g1 100*p1":   true,
		"100*a8":          false,
		"60*p8 p700":      true,
		"60*p8 p500 3*a8": false,
	} {
		q := queued(t, script)
		base, grown := learned.Outgrown(q)
		require.Equal(t, outgrown, grown, script)
		require.Equal(t, outgrown, learned.Due(q), script)
		if outgrown {
			require.Equal(t, *all, base, script)
		}
		// What has been sent counts, too.
		q.Drop(len(q.Operations))
		_, grown = learned.Outgrown(q)
		require.Equal(t, outgrown, grown, script)
		require.False(t, learned.Due(q), script)
		for name, p := range map[string]scheduler.Planner{
			"of all patterns": all.With(without(scheduler.Early), scheduler.Pattern{}), "of all schemes": all.With(scheduler.All, small),
		} {
			_, grown = p.Outgrown(q)
			require.False(t, grown, "%s, %s", name, script)
		}
	}
}

// TestWith makes planners of another scheme from one, which stays as it is.
func TestWith(t *testing.T) {
	const script = "p8 +p8 p9000 g9000 g8"
	operations := queued(t, script).Operations
	first := planner(scheduler.All, true)
	for scheme := range scheduler.All + 1 {
		var of, with scheduler.Plan
		planner(scheme, true).Plan(operations, scheduler.End, &of)
		p := first.With(scheme, scheduler.Pattern{})
		p.Plan(operations, scheduler.End, &with)
		require.Equal(t, of, with, "scheme %b", scheme)
		require.Equal(t, planner(scheme, true).Due(queued(t, script)), p.Due(queued(t, script)), "scheme %b", scheme)
	}
	require.Equal(t, planner(scheduler.All, true), first)
}
