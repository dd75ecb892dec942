package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/scheduler"
)

// What is packed is the program's again at once, what went by itself when news of it has come
// back: where nothing else goes by itself that counts, too.
func TestAloneSavesTheNews(t *testing.T) {
	c := costs
	c.Latency = 1500 * time.Nanosecond // up to (2000 + 1500 - 300) * 2 = 6400 bytes of one
	p := scheduler.NewPlanner(scheduler.Conditions{Costs: c, Scheme: scheduler.All, Direct: true, Packet: packet})
	for _, one := range []struct {
		script  string
		closing bool
		plan    string
	}{
		{"p6399", true, "[0]"},
		{"p6400", true, "0"},
		{"g6399", true, "[0]"},
		{"p6399 p6400", true, "0 1"},           // something goes by itself anyway
		{"p6399", false, "0"},                  // a flush requests a completion after either
		{"p4000 p4000 p4000", true, "[0 1 2]"}, // 3*1700 + 1500 - 6000
		{"p5000 p5000 p5000", true, "0 1 2"},   // 3*1700 + 1500 - 7500
		{"p2000 g2000", true, "[1 0]"},         // 2*1700 + 1500 - 2000 - 2000 on the wire
		{"p3000 g3000", true, "1 0"},           // 2*1700 + 1500 - 3000 - 3000
		{"p3000 g100", true, "[1 0]"},          // 2*1700 + 1500 - 1550 - 100
	} {
		var plan scheduler.Plan
		p.Plan(queued(t, one.script).Operations, following(one.closing), &plan)
		require.Equal(t, one.plan, written(&plan), "%s, closing %v", one.script, one.closing)
	}
}

// Who waits for the buffers alone need not, if all is packed and nothing is read: that is worth a message.
func TestLocalSavesTheNews(t *testing.T) {
	c := costs
	c.Gap, c.Latency, c.Serve = 100*time.Nanosecond, 1500*time.Nanosecond, 500*time.Nanosecond
	p := scheduler.NewPlanner(scheduler.Conditions{Costs: c, Scheme: scheduler.All, Direct: true, Packet: packet})
	for _, one := range []struct {
		script    string
		following scheduler.Following
		plan      string
	}{
		{"p8", scheduler.Local, "[0]"},
		{"p8", scheduler.Nothing, "0"},
		{"p1700", scheduler.Local, "[0]"}, // 200 + 1500 - 300 - 500 - 850
		{"p1900", scheduler.Local, "0"},
		{"p800 p800", scheduler.Local, "[0 1]"}, // 2*(200 - 300) - 800 + 1500 - 500
		{"p900 p900", scheduler.Local, "0 1"},
		{"g8", scheduler.Local, "0"},
		{"p8 g8", scheduler.Local, "1 0"}, // the get is waited for anyway
		{"p8 a8", scheduler.Local, "[1 0]"},
	} {
		var plan scheduler.Plan
		p.Plan(queued(t, one.script).Operations, one.following, &plan)
		require.Equal(t, one.plan, written(&plan), "%s, followed by %v", one.script, one.following)
	}
}

func TestShare(t *testing.T) {
	c := costs
	c.Gap, c.Latency = 100*time.Nanosecond, 1500*time.Nanosecond
	with := func() *scheduler.Planner {
		return scheduler.NewPlanner(scheduler.Conditions{Costs: c, Scheme: scheduler.All, Direct: true, Packet: packet})
	}
	require.InDelta(t, 100./1500, with().Share(0), 1e-9)
	require.InDelta(t, 1, with().Share(2800), 1e-9)
	c.Gap = time.Microsecond
	require.Zero(t, with().Share(1000), "packing it costs nothing")
	c.Latency = 0
	require.GreaterOrEqual(t, with().Share(1), 1., "there is no wait to save")
}

// Where both directions share the link nothing is lost by one after the other.
func TestSharedLink(t *testing.T) {
	for _, c := range []struct {
		duplex float64
		plan   string
	}{{1e9, "[1 0]"}, {1.2e9, "[1 0]"}, {1.9e9, "1 0"}, {0, "1 0"}} {
		costs := costs
		costs.DuplexBandwidth = c.duplex
		var plan scheduler.Plan
		planner := scheduler.NewPlanner(scheduler.Conditions{Costs: costs, Scheme: scheduler.All, Direct: true, Packet: packet})
		planner.Plan(queued(t, "p2500 g2500").Operations, scheduler.End, &plan) // 2*1700 - 2500, and up to 2500 on the wire
		require.Equal(t, c.plan, written(&plan), fmt.Sprint(c.duplex))
	}
}

// Unregistered memory is packed up to more bytes, in several packets if need be, and in a
// message of its own.
func TestUnregistered(t *testing.T) {
	// Up to (2 + 60 - 2*10.3) us at 1.5 ns a byte, in two packets of 10.3 us each: some 27600 bytes.
	unregistered := func(int) float64 { return 60_000 }
	all := scheduler.NewPlanner(scheduler.Conditions{Costs: costs, Unregistered: unregistered, Scheme: scheduler.All, Direct: true, Packet: packet})
	trial := all.With(without(scheduler.Pack), scheduler.Pattern{})
	off := scheduler.NewPlanner(scheduler.Conditions{Costs: costs, Unregistered: unregistered, Scheme: without(scheduler.Pack), Direct: true, Packet: packet})
	for _, one := range []struct {
		name, script, plan string
		planner            *scheduler.Planner
	}{
		{"alone", "!p8", "[0]", all},
		{"a get", "!g8", "[0]", all},
		{"with a registered one, which the message is there for", "!p8 p8", "[0 1]", all},
		{"a registered one alone", "p8", "0", all},
		{"several packets", "!p24000", "[0]", all},
		{"too long", "!p28000", "0", all},
		{"beside what is too long", "!p8 p28000 g28000", "2 1 [0]", all},
		{"on trial without packing", "!p8 p8", "1 [0]", &trial},
		{"without packing", "!p8 p8", "0 1", off},
	} {
		var plan scheduler.Plan
		one.planner.Plan(queued(t, one.script).Operations, scheduler.Nothing, &plan)
		require.Equal(t, one.plan, written(&plan), one.name)
	}
}
